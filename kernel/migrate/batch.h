/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_MIGRATE_BATCH_H
#define MEMSLUICE_MIGRATE_BATCH_H

#include <linux/list.h>

#include "kernel/migrate/move.h"

/* How long the pages of a batch may stay unmapped. */
extern unsigned int memsluice_batch_stall_us;

struct memsluice_batch_order {
	int target_node;
	enum memsluice_why why;
	gfp_t reclaim; /* __GFP_RECLAIM bits for destinations of base pages */
};

/* What became of the folios of a move. */
struct memsluice_batch_result {
	u64 moved_pages;
	u64 gone_pages; /* freed by their owners meanwhile */
	/* Isolated still, mapped as before, by what kept each from moving. */
	struct list_head refused[MEMSLUICE_REFUSALS];
	struct list_head others; /* which only the kernel's own migration can move */
};

/**
 * memsluice_batch_move() - move isolated folios, batch by batch
 * @folios: isolated folios; empty afterwards
 * @order: where to, and why
 * @result: filled
 *
 * Each batch is unmapped, flushed from the TLBs once, copied by one call of the copy engine and
 * mapped again; it is as large as the bound on the stall allows, and one folio at least. Moved are
 * anonymous folios, the swap cache, and files whose migrate operation is the generic one (shared
 * memory). Locks are never waited for while others are held: what is locked is refused as busy.
 *
 * Context: process, may sleep, no mm locks held.
 * Return: 0, or -ENOMEM with all folios among @result->others.
 */
int memsluice_batch_move(struct list_head *folios, const struct memsluice_batch_order *order,
			 struct memsluice_batch_result *result);

void memsluice_batch_start(void);

#endif
