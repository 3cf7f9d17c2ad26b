// SPDX-License-Identifier: GPL-2.0
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "kernel/abi/procfs.h"
#include "kernel/channel/census.h"

/* One census for each time the file is opened, however it is read then. */

static void *census_start(struct seq_file *file, loff_t *at)
{
	struct memsluice_census_table *table = file->private;

	return seq_list_start_head(&table->entries, *at);
}

static void *census_next(struct seq_file *file, void *entry, loff_t *at)
{
	struct memsluice_census_table *table = file->private;

	return seq_list_next(entry, &table->entries, at);
}

static void census_end(struct seq_file *file, void *entry)
{
}

static void show_row(struct seq_file *file, const struct memsluice_census_row *row)
{
	int kind;

	seq_printf(file, "%d %llu ", row->node, row->cgroup_id);
	if (row->cgroup_id)
		memsluice_show_path(file, row->cgroup_id);
	else
		seq_putc(file, '-');
	seq_printf(file, " %llu", row->tenant_id);
	for (kind = 0; kind < MEMSLUICE_FRAME_KINDS; kind++)
		seq_printf(file, " %llu", row->pages[kind]);
	seq_printf(file, " %llu\n",
		   row->held_pages[MEMSLUICE_FRAMES_ANON] +
			   row->held_pages[MEMSLUICE_FRAMES_SHMEM] +
			   row->held_pages[MEMSLUICE_FRAMES_FILE]);
}

static int census_show(struct seq_file *file, void *at)
{
	struct memsluice_census_table *table = file->private;

	if (at == &table->entries)
		seq_puts(
			file,
			"# node cgroup_id path tenant_id anon_pages shmem_pages file_pages hugetlb_pages kernel_pages pool_pages free_pages poisoned_pages reserved_pages held_pages\n");
	else
		show_row(file, &list_entry(at, struct memsluice_census_entry, link)->row);
	return 0;
}

static const struct seq_operations census_seq = {
	.start = census_start,
	.next = census_next,
	.stop = census_end,
	.show = census_show,
};

static int census_open(struct inode *inode, struct file *file)
{
	struct memsluice_census_table *table;
	int err;

	table = __seq_open_private(file, &census_seq, sizeof(*table));
	if (!table)
		return -ENOMEM;
	err = memsluice_census_take(NUMA_NO_NODE, table);
	if (err) {
		memsluice_census_free(table);
		seq_release_private(inode, file);
	}
	return err;
}

static int census_release(struct inode *inode, struct file *file)
{
	struct seq_file *seq = file->private_data;

	memsluice_census_free(seq->private);
	return seq_release_private(inode, file);
}

const struct proc_ops memsluice_census_ops = {
	.proc_open = census_open,
	.proc_read_iter = seq_read_iter,
	.proc_lseek = seq_lseek,
	.proc_release = census_release,
};
