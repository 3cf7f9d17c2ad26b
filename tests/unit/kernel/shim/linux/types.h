/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_TYPES_H
#define SHIM_LINUX_TYPES_H

#include_next <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define fallthrough __attribute__((__fallthrough__))

#endif
