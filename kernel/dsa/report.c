// SPDX-License-Identifier: GPL-2.0
#include "kernel/dsa/report.h"

#include <linux/seq_file.h>
#include <linux/string.h>

#include "kernel/dsa/engine.h"
#include "kernel/dsa/queue.h"

static const char *const state_names[] = {
	[MEMSLUICE_QUEUE_UP] = "up",
	[MEMSLUICE_QUEUE_RESTING] = "resting",
	[MEMSLUICE_QUEUE_STUCK] = "stuck",
	[MEMSLUICE_QUEUE_DRAINED] = "drained",
};

static enum memsluice_queue_state state_of(const struct memsluice_dsa_queue *queue)
{
	lockdep_assert_held(&queue->lock);
	return queue->drained && queue->state != MEMSLUICE_QUEUE_STUCK ? MEMSLUICE_QUEUE_DRAINED :
									 queue->state;
}

static void show_queue(struct seq_file *file, struct memsluice_dsa_queue *queue)
{
	struct memsluice_dsa_counts *now = &queue->counts;
	int status;

	spin_lock(&queue->lock);
	seq_printf(
		file,
		"queue %s node %d %s depth %u max_batch %u max_transfer_bytes %u descriptors %llu batches %llu bytes %llu errors %llu late %llu quarantined %llu addresses %s\n",
		memsluice_dsa_name(queue), queue->node, state_names[state_of(queue)],
		queue->slot_count, queue->max_batch, queue->max_transfer_bytes, now->descriptors,
		now->batches, now->bytes, now->errors, now->late, now->late - now->released,
		queue->maps ? "mapped" : "physical");
	for (status = 0; status < ARRAY_SIZE(now->by_status); status++) {
		if (now->by_status[status])
			seq_printf(file, "status %s 0x%02x %llu\n", memsluice_dsa_name(queue),
				   status, now->by_status[status]);
	}
	spin_unlock(&queue->lock);
}

void memsluice_dsa_show(struct seq_file *file)
{
	struct memsluice_dsa_engine_counts counts = memsluice_dsa_engine_counts();
	struct memsluice_dsa_queue *queue;

	seq_printf(
		file,
		"calls %llu\nbytes %llu\ndeclined_small %llu\ndeclined_busy %llu\ndeclined_share %llu\ndeclined_no_queue %llu\nfailed_folios %llu\nlate_folios %llu\ndiffering_folios %llu\nsubmit_ns %llu\nslept %llu\nns_per_mib %llu\nleast_bytes %llu\n",
		counts.calls, counts.bytes, counts.declined_small, counts.declined_busy,
		counts.declined_share, counts.declined_no_queue, counts.failed_folios,
		counts.late_folios, counts.differing_folios, counts.submit_ns, counts.slept,
		counts.ns_per_mib, memsluice_dsa_least_bytes_now());
	down_read(&memsluice_dsa_queues_lock);
	list_for_each_entry(queue, &memsluice_dsa_queues, link)
		show_queue(file, queue);
	up_read(&memsluice_dsa_queues_lock);
}

void memsluice_dsa_status(struct memsluice_engine_status *status)
{
	struct memsluice_dsa_engine_counts counts = memsluice_dsa_engine_counts();

	status->calls = counts.calls;
	status->bytes = counts.bytes;
	status->declined = counts.declined_small + counts.declined_busy + counts.declined_share +
			   counts.declined_no_queue;
	status->failed_folios = counts.failed_folios;
	status->late_folios = counts.late_folios;
	status->differing_folios = counts.differing_folios;
	down_read(&memsluice_dsa_queues_lock);
	status->queues = list_count_nodes(&memsluice_dsa_queues);
	up_read(&memsluice_dsa_queues_lock);
}

static void fill(struct memsluice_engine_queue *out, struct memsluice_dsa_queue *queue)
{
	spin_lock(&queue->lock);
	strscpy(out->name, memsluice_dsa_name(queue));
	out->node = queue->node;
	out->state = state_of(queue);
	out->depth = queue->slot_count;
	out->max_batch = queue->max_batch;
	out->max_transfer_bytes = queue->max_transfer_bytes;
	out->descriptors = queue->counts.descriptors;
	out->batches = queue->counts.batches;
	out->bytes = queue->counts.bytes;
	out->errors = queue->counts.errors;
	out->late = queue->counts.late;
	out->quarantined = queue->counts.late - queue->counts.released;
	spin_unlock(&queue->lock);
}

bool memsluice_dsa_queue_at(struct memsluice_engine_queue *out)
{
	struct memsluice_dsa_queue *queue;
	u32 index = 0;

	down_read(&memsluice_dsa_queues_lock);
	list_for_each_entry(queue, &memsluice_dsa_queues, link) {
		if (index++ == out->index) {
			fill(out, queue);
			up_read(&memsluice_dsa_queues_lock);
			return true;
		}
	}
	up_read(&memsluice_dsa_queues_lock);
	return false;
}
