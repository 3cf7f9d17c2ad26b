/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_BTF_H
#define SHIM_LINUX_BTF_H

#include_next <linux/btf.h>
#include <linux/types.h>

#endif
