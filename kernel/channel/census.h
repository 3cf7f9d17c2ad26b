/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_CHANNEL_CENSUS_H
#define MEMSLUICE_CHANNEL_CENSUS_H

#include <linux/list.h>

#include "include/uapi/memsluice.h"

struct memsluice_census_entry {
	struct list_head link;
	struct memsluice_census_row row;
};

/* Rows in ascending order of node, then of cgroup id. */
struct memsluice_census_table {
	struct list_head entries; /* struct memsluice_census_entry */
	u32 count;
};

/**
 * memsluice_census_take() - count the page frames of a node, or of all, by who is charged
 * @nid: the node, or NUMA_NO_NODE for all with memory
 * @table: out: to be freed with memsluice_census_free(), whatever this returns
 *
 * Every frame that is online is in exactly one row, by what it was when it was looked at. On a
 * machine at work, what moves meanwhile may be met twice or not at all.
 *
 * Context: process. Takes some milliseconds a GiB.
 * Return: 0; -ENOMEM; -EINTR when a fatal signal came.
 */
int memsluice_census_take(int nid, struct memsluice_census_table *table);

/* The same of page frames of a node, [@pfn, @end): what CPUs hold as new, they hold. */
int memsluice_census_take_frames(int nid, unsigned long pfn, unsigned long end,
				 struct memsluice_census_table *table);
void memsluice_census_free(struct memsluice_census_table *table);

#endif
