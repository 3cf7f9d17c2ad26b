// SPDX-License-Identifier: GPL-2.0
#include "kernel/copy/plan.h"

#include <linux/minmax.h>

static void close(struct memsluice_plan *plan, unsigned int queue)
{
	plan->sink->close(plan->context, queue, plan->open[queue]);
	plan->open[queue] = 0;
}

static void give(struct memsluice_plan *plan, unsigned int queue, u32 offset_bytes, u32 bytes)
{
	const struct memsluice_plan_queue *limits = &plan->queues[queue];
	struct memsluice_plan_piece piece = { .folio = plan->folios };
	u32 end_bytes = offset_bytes + bytes;

	for (; offset_bytes < end_bytes; offset_bytes += piece.bytes) {
		piece.offset_bytes = offset_bytes;
		piece.bytes = min(end_bytes - offset_bytes, limits->max_transfer_bytes);
		if (piece.bytes >= plan->alone_bytes || limits->max_batch < 2) {
			plan->sink->alone(plan->context, queue, &piece);
			continue;
		}
		plan->sink->grouped(plan->context, queue, &piece);
		if (++plan->open[queue] == limits->max_batch)
			close(plan, queue);
	}
}

void memsluice_plan_begin(struct memsluice_plan *plan)
{
	unsigned int queue;

	plan->turn = 0;
	plan->folios = 0;
	for (queue = 0; queue < plan->queue_count; queue++)
		plan->open[queue] = 0;
}

void memsluice_plan_add(struct memsluice_plan *plan, u32 bytes)
{
	u32 pages = bytes / MEMSLUICE_PLAN_PAGE_BYTES;
	u32 each = pages / plan->queue_count;
	u32 left_over = pages % plan->queue_count;
	u32 offset_bytes = 0, i;

	for (i = 0; offset_bytes < bytes; i++) {
		u32 share_bytes = (each + (i < left_over)) * MEMSLUICE_PLAN_PAGE_BYTES;

		give(plan, (plan->turn + i) % plan->queue_count, offset_bytes, share_bytes);
		offset_bytes += share_bytes;
	}
	plan->turn = (plan->turn + left_over) % plan->queue_count;
	plan->folios++;
}

void memsluice_plan_end(struct memsluice_plan *plan)
{
	unsigned int queue;

	for (queue = 0; queue < plan->queue_count; queue++) {
		if (plan->open[queue])
			close(plan, queue);
	}
}
