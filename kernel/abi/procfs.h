/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_ABI_PROCFS_H
#define MEMSLUICE_ABI_PROCFS_H

#include <linux/types.h>

struct proc_ops;
struct seq_file;

/* The path of a cgroup, without what would break a line; "?" if it has been removed. */
void memsluice_show_path(struct seq_file *file, u64 cgroup_id);

extern const struct proc_ops memsluice_census_ops;

#endif
