/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SHIM_LINUX_MM_H
#define SHIM_LINUX_MM_H

#include <stdlib.h>

#define GFP_KERNEL 0
#define kvmalloc(bytes, gfp) malloc(bytes)
#define kvfree(pointer) free(pointer)
#define struct_size(pointer, member, count)                                                        \
	(sizeof(*(pointer)) + (count) * sizeof(*(pointer)->member))

#endif
