/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_MIGRATE_COLLECT_H
#define MEMSLUICE_MIGRATE_COLLECT_H

#include <linux/list.h>
#include <linux/mm_types.h>

#include "kernel/migrate/move.h"

struct cgroup;

/* What is known of a page that an address names, after looking for it once. */
struct memsluice_named {
	s32 result; /* -1 - reason if it is not to be moved; else 0 */
	unsigned long
		pfn; /* of a base page that was isolated, or is there already; 0: look again */
};

/* What a move by frames does with a folio: the node that it goes to, or -1 - reason if it stays. */
typedef int memsluice_target_of_t(struct folio *folio, void *private);

/*
 * Isolates the folios that a move is about. @wanted may be NULL: every folio; else it is asked
 * under the page table lock, with @private, whether a folio shall move.
 */
struct memsluice_collect {
	int target_node;
	/* NULL: all go to @target_node; else asked with a reference, and nothing locked */
	memsluice_target_of_t *target_of;
	int source_node; /* NUMA_NO_NODE: any */
	bool shared; /* take folios that other processes map, too */
	bool (*wanted)(struct folio *folio, void *private);
	void *private;
	unsigned long room_pages; /* stop when that many have been collected */

	struct list_head folios; /* for memsluice_move() */
	struct list_head *folios_to; /* with @target_of: instead of it, by node */
	unsigned long pages; /* on the list */
	struct memsluice_counts *counts; /* seen, already there, refused at once */
	unsigned long next; /* out: where to go on after moving what was collected */
	/* private: */
	struct folio *last; /* a large folio mapped page by page is met once a page, */
	struct memsluice_named last_named; /* with the same outcome */
	struct memsluice_named *named; /* NULL, or of the page at named_start, and of those after */
	unsigned long named_start;
};

/**
 * memsluice_collect_range() - isolate what a process has mapped in a range
 * @collect: what to take
 * @mm: the caller holds a reference on its users
 * @start: page-aligned
 * @end: page-aligned, exclusive
 *
 * A huge page that reaches into the range is taken whole. Holes are not counted as seen.
 * @collect->next is @end when the whole range has been walked.
 *
 * Context: process; takes the mmap lock.
 * Return: 0, or -EINTR when a fatal signal came.
 */
int memsluice_collect_range(struct memsluice_collect *collect, struct mm_struct *mm,
			    unsigned long start, unsigned long end);

/**
 * memsluice_collect_addresses() - isolate the pages that a process has at some addresses
 * @collect: what to take
 * @mm: the caller holds a reference on its users
 * @addresses: page-aligned
 * @count: how many
 * @named: NULL, or as many: what is known of each page afterwards
 *
 * Adjacent addresses in a row are walked as one range. An address without a page that may move is
 * counted as refused, if @named is there.
 *
 * Context: process; takes the mmap lock.
 * Return: how many have been looked at, less than @count when there is no room for more; or
 * -EINTR when a fatal signal came.
 */
long memsluice_collect_addresses(struct memsluice_collect *collect, struct mm_struct *mm,
				 const u64 *addresses, unsigned long count,
				 struct memsluice_named *named);

/**
 * memsluice_collect_frames() - isolate page frames charged to a cgroup or below it
 * @collect: what to take; it does not ask whether they are shared
 * @cgroup: the caller's reference
 * @pfn: first page frame
 * @end: exclusive
 *
 * Finds what no process maps, too: page cache, swap cache, shared memory. @collect->next is @end
 * when all have been looked at.
 */
void memsluice_collect_frames(struct memsluice_collect *collect, const struct cgroup *cgroup,
			      unsigned long pfn, unsigned long end);

/* The node of the page at an address and its frame number, or NUMA_NO_NODE. Context: as above. */
int memsluice_node_at(struct mm_struct *mm, unsigned long address, unsigned long *pfn);

#endif
