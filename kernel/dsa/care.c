// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/dsa/care.h"

#include <linux/delay.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/workqueue.h>

#include "kernel/dsa/trial.h"

#define PERIOD_MS 100
#define REST_MS_MIN 1000U
#define REST_MS_MAX 64000U
/* How long what is late may take to end. */
#define LATE_MS 2000
#define LOOK_MS 10

static void care(struct work_struct *work);
static DECLARE_DELAYED_WORK(work, care);
/* Tests come one after the other, or they would undo what each other has found. */
static DEFINE_MUTEX(test_lock);

/* What was copied there belongs to somebody who has it elsewhere by now. */
static void release_piece(struct memsluice_dsa_queue *queue,
			  const struct memsluice_dsa_piece *piece)
{
	u32 offset_bytes;

	memsluice_dsa_unmap(queue, piece);
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
		release_piece(slot->queue, &pieces[count]);
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

/* Return: whether anything is late still. */
static bool release_ended(struct memsluice_dsa_queue *queue)
{
	struct memsluice_dsa_slot *slot;

	while ((slot = take_late(queue, true))) {
		release(slot);
		memsluice_dsa_slot_free(slot);
	}
	return !list_empty(&queue->late);
}

bool memsluice_dsa_wait_for_late(struct memsluice_dsa_queue *queue)
{
	int waited_ms;

	for (waited_ms = 0; release_ended(queue); waited_ms += LOOK_MS) {
		if (waited_ms >= LATE_MS)
			return false;
		msleep(LOOK_MS);
	}
	return true;
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
	queue->state = MEMSLUICE_QUEUE_RESTING;
	queue->rest_ms = clamp(2 * queue->rest_ms, REST_MS_MIN, REST_MS_MAX);
	queue->test_at = jiffies + msecs_to_jiffies(queue->rest_ms);
	memsluice_dsa_care_soon();
}

void memsluice_dsa_care_soon(void)
{
	queue_delayed_work(system_unbound_wq, &work, msecs_to_jiffies(PERIOD_MS));
}

/* Return: 0, and it copies; a negative errno of memsluice_dsa_trial(). */
static int test(struct memsluice_dsa_queue *queue)
{
	bool copied = memsluice_dsa_is_up(queue);
	int err = memsluice_dsa_trial(queue);
	bool stuck;

	lockdep_assert_held(&test_lock);
	if (err == -ENOMEM) /* which says nothing about the queue */
		return err;
	spin_lock(&queue->lock);
	stuck = queue->state == MEMSLUICE_QUEUE_STUCK;
	if (!stuck && err) {
		memsluice_dsa_rest(queue);
	} else if (!stuck) {
		queue->state = MEMSLUICE_QUEUE_UP;
		queue->drained = false;
	}
	spin_unlock(&queue->lock);
	if (stuck)
		return err ?: -EBUSY;
	if (err)
		pr_err("%s: failed its test (%d): the next one is in %u ms\n",
		       memsluice_dsa_name(queue), err, queue->rest_ms);
	else if (!copied)
		pr_info("%s: works again\n", memsluice_dsa_name(queue));
	return err;
}

static void care_for(struct memsluice_dsa_queue *queue)
{
	if (queue->state == MEMSLUICE_QUEUE_STUCK && !release_ended(queue)) {
		pr_info("%s: what was late has ended\n", memsluice_dsa_name(queue));
		spin_lock(&queue->lock);
		memsluice_dsa_rest(queue);
		spin_unlock(&queue->lock);
	}
	if (queue->state == MEMSLUICE_QUEUE_RESTING && !queue->drained &&
	    time_after_eq(jiffies, queue->test_at))
		test(queue);
}

static bool needs_care(const struct memsluice_dsa_queue *queue)
{
	return queue->state == MEMSLUICE_QUEUE_STUCK ||
	       (queue->state == MEMSLUICE_QUEUE_RESTING && !queue->drained);
}

static void care(struct work_struct *unused)
{
	struct memsluice_dsa_queue *queue;
	bool again = false;

	down_read(&memsluice_dsa_queues_lock);
	mutex_lock(&test_lock);
	list_for_each_entry(queue, &memsluice_dsa_queues, link) {
		care_for(queue);
		again |= needs_care(queue);
	}
	mutex_unlock(&test_lock);
	up_read(&memsluice_dsa_queues_lock);
	if (again)
		memsluice_dsa_care_soon();
}

static struct memsluice_dsa_queue *find(const char *name)
{
	struct memsluice_dsa_queue *queue;

	lockdep_assert_held(&memsluice_dsa_queues_lock);
	list_for_each_entry(queue, &memsluice_dsa_queues, link) {
		if (!strcmp(memsluice_dsa_name(queue), name))
			return queue;
	}
	return NULL;
}

int memsluice_dsa_test_queue(const char *name)
{
	struct memsluice_dsa_queue *queue;
	int err = -ENOENT;

	down_read(&memsluice_dsa_queues_lock);
	mutex_lock(&test_lock);
	queue = find(name);
	if (queue)
		err = queue->state == MEMSLUICE_QUEUE_STUCK ? -EBUSY : test(queue);
	mutex_unlock(&test_lock);
	up_read(&memsluice_dsa_queues_lock);
	return err;
}

int memsluice_dsa_drain_queue(const char *name)
{
	struct memsluice_dsa_queue *queue;
	int err = -ENOENT;

	/* Those that copy through it have ended once this is held for writing. */
	down_write(&memsluice_dsa_queues_lock);
	queue = find(name);
	if (queue)
		queue->drained = true;
	downgrade_write(&memsluice_dsa_queues_lock);
	if (queue)
		err = memsluice_dsa_wait_for_late(queue) ? 0 : -EBUSY;
	up_read(&memsluice_dsa_queues_lock);
	return err;
}

void memsluice_dsa_care_stop(void)
{
	cancel_delayed_work_sync(&work);
}
