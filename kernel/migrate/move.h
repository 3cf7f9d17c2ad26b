/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_MIGRATE_MOVE_H
#define MEMSLUICE_MIGRATE_MOVE_H

#include <linux/list.h>
#include <linux/types.h>

#include "include/uapi/memsluice.h"

struct folio;
struct xarray;

enum memsluice_why {
	MEMSLUICE_WHY_REQUEST,
	MEMSLUICE_WHY_PROMOTION,
	MEMSLUICE_WHY_DEMOTION,
	MEMSLUICE_WHY_PLACEMENT,
};

/* All in base pages. */
struct memsluice_counts {
	u64 seen;
	u64 moved;
	u64 already_there;
	u64 refused[MEMSLUICE_REFUSALS];
};

void memsluice_counts_add(struct memsluice_counts *to, const struct memsluice_counts *more);
u64 memsluice_counts_refused(const struct memsluice_counts *counts);

struct memsluice_move_order {
	int target_node;
	/* Requests and placement wait for locks and writeback, and requests reclaim; tiering neither. */
	enum memsluice_why why;
	bool in_tree; /* by the kernel's own migration only */
};

/**
 * memsluice_move() - move isolated folios to a node
 * @folios: folios isolated by memsluice_isolate(); empty afterwards
 * @order: where to, why, and how
 * @counts: moved and refused pages are added
 * @refusals: NULL, or where the reason for each refused folio is stored by page frame number
 *
 * Batches of our own move what they can. The rest goes to the kernel's migration: what only that
 * can move, and for a request also what it may wait for, or has to split. Folios that cannot be
 * moved go back to where they were.
 *
 * Context: process, may sleep, no mm locks held.
 */
void memsluice_move(struct list_head *folios, const struct memsluice_move_order *order,
		    struct memsluice_counts *counts, struct xarray *refusals);

/**
 * memsluice_isolate() - take a folio off its LRU list, for memsluice_move()
 * @folio: somebody holds a reference
 * @folios: where it goes
 *
 * Return: true, and the list holds a reference of its own; false: it is not on a list, or somebody
 * else has it.
 */
bool memsluice_isolate(struct folio *folio, struct list_head *folios);

/* Folios that were freed into per-CPU batches cannot be isolated: call once before a long run. */
void memsluice_isolate_prepare(void);

/*
 * How many pages of a node, or of the one that allows the least, may be isolated at once: reclaim
 * waits when it finds too many. Never less than one huge page.
 */
unsigned long memsluice_isolation_room(int nid);

/* @batches: what batches of our own need of the kernel is there. */
int memsluice_move_start(bool batches);
void memsluice_move_stop(void);

#endif
