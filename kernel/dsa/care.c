// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/dsa/care.h"

#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/workqueue.h>

#include "kernel/dsa/engine.h"

#define PERIOD_MS 100
#define REST_MS_MIN 1000U
#define REST_MS_MAX 64000U

static void care(struct work_struct *work);
static DECLARE_DELAYED_WORK(work, care);

/* What was copied there belongs to somebody who has it elsewhere by now. */
static void release_piece(const struct memsluice_dsa_piece *piece)
{
	u32 offset_bytes;

	for (offset_bytes = 0; offset_bytes < piece->bytes; offset_bytes += PAGE_SIZE)
		clear_highpage(folio_page(piece->destination,
					  (piece->offset_bytes + offset_bytes) / PAGE_SIZE));
	folio_put(piece->destination);
}

static void release(struct memsluice_dsa_slot *slot)
{
	const struct memsluice_dsa_piece *pieces;
	u32 count;

	pieces = memsluice_dsa_slot_pieces(slot, &count);
	while (count--)
		release_piece(&pieces[count]);
	module_put(THIS_MODULE);
}

void memsluice_dsa_keep_late(struct memsluice_dsa_slot *slot)
{
	lockdep_assert_held(&slot->queue->lock);
	__module_get(THIS_MODULE);
	list_add_tail(&slot->link, &slot->queue->late);
	slot->queue->counts.late++;
}

static struct memsluice_dsa_slot *take_late(struct memsluice_dsa_queue *queue, bool only_ended)
{
	struct memsluice_dsa_slot *slot, *found = NULL;

	spin_lock(&queue->lock);
	list_for_each_entry(slot, &queue->late, link) {
		if (!only_ended || memsluice_dsa_slot_ended(slot)) {
			found = slot;
			list_del(&slot->link);
			queue->counts.released++;
			break;
		}
	}
	spin_unlock(&queue->lock);
	return found;
}

bool memsluice_dsa_release_ended(struct memsluice_dsa_queue *queue)
{
	struct memsluice_dsa_slot *slot;

	while ((slot = take_late(queue, true))) {
		release(slot);
		memsluice_dsa_slot_free(slot);
	}
	return !list_empty(&queue->late);
}

void memsluice_dsa_release_all(struct memsluice_dsa_queue *queue)
{
	struct memsluice_dsa_slot *slot;

	while ((slot = take_late(queue, false)))
		release(slot);
}

void memsluice_dsa_rest(struct memsluice_dsa_queue *queue)
{
	lockdep_assert_held(&queue->lock);
	queue->state = MEMSLUICE_DSA_RESTING;
	queue->rest_ms = clamp(2 * queue->rest_ms, REST_MS_MIN, REST_MS_MAX);
	queue->test_at = jiffies + msecs_to_jiffies(queue->rest_ms);
	memsluice_dsa_care_soon();
}

void memsluice_dsa_care_soon(void)
{
	queue_delayed_work(system_unbound_wq, &work, msecs_to_jiffies(PERIOD_MS));
}

static void test(struct memsluice_dsa_queue *queue)
{
	int err = memsluice_dsa_engine_test(queue);

	if (err == -ETIMEDOUT) /* stuck again */
		return;
	spin_lock(&queue->lock);
	if (err)
		memsluice_dsa_rest(queue);
	else
		queue->state = MEMSLUICE_DSA_UP;
	spin_unlock(&queue->lock);
	if (err)
		pr_err("%s: failed its test (%d): the next one is in %u ms\n",
		       memsluice_dsa_name(queue), err, queue->rest_ms);
	else
		pr_info("%s: works again\n", memsluice_dsa_name(queue));
}

static void care_for(struct memsluice_dsa_queue *queue)
{
	if (queue->state == MEMSLUICE_DSA_STUCK && !memsluice_dsa_release_ended(queue)) {
		pr_info("%s: what was late has ended\n", memsluice_dsa_name(queue));
		spin_lock(&queue->lock);
		memsluice_dsa_rest(queue);
		spin_unlock(&queue->lock);
	}
	if (queue->state == MEMSLUICE_DSA_RESTING && time_after_eq(jiffies, queue->test_at))
		test(queue);
}

static void care(struct work_struct *unused)
{
	struct memsluice_dsa_queue *queue;
	bool all_up = true;

	down_read(&memsluice_dsa_queues_lock);
	list_for_each_entry(queue, &memsluice_dsa_queues, link) {
		care_for(queue);
		all_up &= queue->state == MEMSLUICE_DSA_UP;
	}
	up_read(&memsluice_dsa_queues_lock);
	if (!all_up)
		memsluice_dsa_care_soon();
}

void memsluice_dsa_care_stop(void)
{
	cancel_delayed_work_sync(&work);
}
