/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_ABI_H
#define MEMSLUICE_ABI_H

#include <linux/types.h>

#define MEMSLUICE_RELEASE "0.1.0"

/* MEMSLUICE_FEATURE_* that work on this kernel; set before anything of the ABI appears. */
extern u64 memsluice_features;

int memsluice_chardev_start(void);
void memsluice_chardev_stop(void);

int memsluice_procfs_start(void);
void memsluice_procfs_stop(void);

int memsluice_sysfs_start(void);
void memsluice_sysfs_stop(void);

#endif
