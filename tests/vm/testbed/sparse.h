/* SPDX-License-Identifier: GPL-2.0 */
/* For sparse only: what newer kernels' headers use and Debian 13's sparse does not know. */
#define __typeof_unqual__ __typeof__
#define __builtin_strlen(string) (sizeof(string) - 1)
