/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COPY_PLAN_H
#define MEMSLUICE_COPY_PLAN_H

#include <linux/types.h>

/*
 * Which bytes go to which work queue of a DMA engine, and which of them together. Pure: values in,
 * calls of the sink out; also compiled into the tests on the host.
 *
 * This is DSA-2LM's adaptable concurrent migration (ATC '25, algorithm 1): large folios are split
 * over all queues, base pages are grouped into batches. Unlike there, every folio is dealt out page
 * by page where the last one ended. So for any number of queues, and any mix of sizes in any order,
 * no two queues ever differ by more than one page, and no remainder needs care.
 */

#define MEMSLUICE_PLAN_PAGE_BYTES 4096U
#define MEMSLUICE_PLAN_QUEUES_MAX 64U

/* What a work queue can take: read from its device. */
struct memsluice_plan_queue {
	u32 max_transfer_bytes; /* of a descriptor: a whole number of pages, at least one */
	u32 max_batch; /* descriptors of a batch; less than 2: it takes none */
};

/* A part of a folio, for one MEMMOVE. */
struct memsluice_plan_piece {
	u32 folio; /* its number, in the order of memsluice_plan_add() */
	u32 offset_bytes;
	u32 bytes;
};

struct memsluice_plan_sink {
	/* A descriptor of its own. */
	void (*alone)(void *context, unsigned int queue, const struct memsluice_plan_piece *piece);
	/* One more for the queue's open group. */
	void (*grouped)(void *context, unsigned int queue,
			const struct memsluice_plan_piece *piece);
	/* The group has its @count pieces: one becomes a MEMMOVE, more become a BATCH. */
	void (*close)(void *context, unsigned int queue, u32 count);
};

struct memsluice_plan {
	/* Set by who plans: */
	const struct memsluice_plan_queue *queues;
	unsigned int queue_count; /* 1 to MEMSLUICE_PLAN_QUEUES_MAX */
	u32 alone_bytes; /* pieces of this size and above are not grouped */
	const struct memsluice_plan_sink *sink;
	void *context; /* of the sink */
	/* private: */
	unsigned int turn; /* the queue that gets the next page */
	u32 folios;
	u32 open[MEMSLUICE_PLAN_QUEUES_MAX]; /* pieces in the queue's group */
};

/* Context for all of these: any; the sink is called from within. */
void memsluice_plan_begin(struct memsluice_plan *plan);

/**
 * memsluice_plan_add() - deal out one more folio
 * @plan: begun
 * @bytes: a whole number of pages, less than 4 GiB
 *
 * Cost: one call of the sink for each queue that gets a part, and for each transfer that a part is
 * too large for. Groups are closed when they are full.
 */
void memsluice_plan_add(struct memsluice_plan *plan, u32 bytes);

/* Closes the groups that are left. */
void memsluice_plan_end(struct memsluice_plan *plan);

#endif
