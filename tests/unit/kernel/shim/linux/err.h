/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_ERR_H
#define SHIM_LINUX_ERR_H

#include <errno.h>
#include <stdint.h>

#define ERR_PTR(error) ((void *)(intptr_t)(error))

#endif
