// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/dsa/call.h"

#include <linux/delay.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "kernel/dsa/care.h"
#include "kernel/dsa/trace.h"

/* Pieces of this size are worth a descriptor of their own. */
#define ALONE_BYTES (32U << 10)
/* So often whoever sleeps looks himself, for an interrupt may be lost; or when none is to come. */
#define LOOK_NS (10 * NSEC_PER_MSEC)
#define LOOK_SOON_US 100
/* Interrupts of a queue that are waited for at once, by whomever. */
#define INTERRUPTS_MAX 8U
/* While there is no room for one more descriptor. */
#define ROOM_US 20
#define FAILURES_MAX 3U

unsigned int memsluice_dsa_deadline_us = 20000;
unsigned int memsluice_dsa_spin_us = 50;

bool memsluice_dsa_differs(struct folio *one, struct folio *other, size_t offset_bytes,
			   size_t bytes)
{
	size_t at;

	for (at = offset_bytes; at < offset_bytes + bytes; at += PAGE_SIZE) {
		void *page = kmap_local_folio(one, at), *others = kmap_local_folio(other, at);
		bool differs = memcmp(page, others, PAGE_SIZE);

		kunmap_local(others);
		kunmap_local(page);
		if (differs)
			return true;
		cond_resched();
	}
	return false;
}

static void fail(struct memsluice_dsa_call *call, const struct memsluice_dsa_piece *piece, int err)
{
	call->copies[piece->folio].error = err;
}

static void fail_list(struct memsluice_dsa_call *call, const struct memsluice_dsa_list *list,
		      int err)
{
	u32 i;

	for (i = 0; i < list->count; i++)
		fail(call, &list->pieces[i], err);
}

/* The device has not got it, and will not. */
static void give_up(struct memsluice_dsa_call *call, struct memsluice_dsa_queue *queue,
		    const struct memsluice_dsa_piece *piece, int err)
{
	memsluice_dsa_unmap(queue, piece);
	fail(call, piece, err);
}

static void give_up_list(struct memsluice_dsa_call *call, struct memsluice_dsa_queue *queue,
			 const struct memsluice_dsa_list *list, int err)
{
	u32 i;

	for (i = 0; i < list->count; i++)
		give_up(call, queue, &list->pieces[i], err);
}

/* A queue that fails again and again rests, each time for longer. */
static void count_failure(struct memsluice_dsa_queue *queue, u8 status)
{
	bool rests;

	spin_lock(&queue->lock);
	queue->counts.errors++;
	queue->counts.by_status[status & DSA_COMP_STATUS_MASK]++;
	rests = ++queue->failures >= FAILURES_MAX && queue->state == MEMSLUICE_QUEUE_UP;
	if (rests)
		memsluice_dsa_rest(queue);
	spin_unlock(&queue->lock);
	trace_memsluice_dsa_failure(memsluice_dsa_name(queue), status);
	pr_warn_ratelimited("%s: a copy failed: status 0x%02x, %s\n", memsluice_dsa_name(queue),
			    status, memsluice_dsa_status_name(status));
	if (rests)
		pr_err("%s: failed %u times in a row: it copies nothing for %u ms, and is tested then\n",
		       memsluice_dsa_name(queue), FAILURES_MAX, queue->rest_ms);
}

static void count_success(struct memsluice_dsa_queue *queue, u64 bytes)
{
	spin_lock(&queue->lock);
	queue->counts.bytes += bytes;
	queue->counts.by_status[DSA_COMP_SUCCESS]++;
	queue->failures = 0;
	if (queue->state == MEMSLUICE_QUEUE_UP)
		queue->rest_ms = 0;
	spin_unlock(&queue->lock);
}

static bool succeeded(u8 status)
{
	return (status & DSA_COMP_STATUS_MASK) == DSA_COMP_SUCCESS;
}

/* Return: whether the entry has copied what it was to copy. */
static bool entry_succeeded(struct memsluice_dsa_call *call, struct memsluice_dsa_slot *slot, u32 i)
{
	const struct memsluice_dsa_piece *piece = &slot->list->pieces[i];
	u8 status = slot->list->records[i].status;

	if (status && !succeeded(status)) {
		count_failure(slot->queue, status);
		return false;
	}
	return !memsluice_dsa_differs(call->copies[piece->folio].source, piece->destination,
				      piece->offset_bytes, piece->bytes);
}

/*
 * Only entries that fail write their records. One that was not executed writes none either, nor
 * does one whose record cannot be written: what says nothing is compared.
 */
static void end_batch(struct memsluice_dsa_call *call, struct memsluice_dsa_slot *slot)
{
	u8 status = slot->desc->completion->status;
	u64 bytes = 0;
	u32 i;

	if ((status & DSA_COMP_STATUS_MASK) != DSA_COMP_BATCH_FAIL) {
		fail_list(call, slot->list, -EIO);
		count_failure(slot->queue, status);
		return;
	}
	for (i = 0; i < slot->list->count; i++) {
		if (entry_succeeded(call, slot, i))
			bytes += slot->list->pieces[i].bytes;
		else
			fail(call, &slot->list->pieces[i], -EIO);
	}
	if (bytes)
		count_success(slot->queue, bytes);
}

static void unmap(const struct memsluice_dsa_slot *slot)
{
	const struct memsluice_dsa_piece *pieces;
	u32 count;

	pieces = memsluice_dsa_slot_pieces(slot, &count);
	while (count--)
		memsluice_dsa_unmap(slot->queue, &pieces[count]);
}

static u64 bytes_of(const struct memsluice_dsa_slot *slot)
{
	const struct memsluice_dsa_piece *pieces;
	u64 bytes = 0;
	u32 count;

	pieces = memsluice_dsa_slot_pieces(slot, &count);
	while (count--)
		bytes += pieces[count].bytes;
	return bytes;
}

/* The descriptor has ended. */
static void end(struct memsluice_dsa_call *call, struct memsluice_dsa_slot *slot)
{
	u8 status = slot->desc->completion->status;

	dma_rmb(); /* what was copied, and the records of a batch, after the status */
	unmap(slot);
	list_del(&slot->link);
	if (succeeded(status)) {
		count_success(slot->queue, bytes_of(slot));
	} else if (slot->list) {
		end_batch(call, slot);
	} else {
		fail(call, &slot->piece, -EIO);
		count_failure(slot->queue, status);
	}
	memsluice_dsa_slot_free(slot);
}

/* Return: how many have ended. */
static unsigned int reap(struct memsluice_dsa_call *call)
{
	struct memsluice_dsa_slot *slot, *next;
	unsigned int ended = 0;

	list_for_each_entry_safe(slot, next, &call->under_way, link) {
		if (memsluice_dsa_slot_ended(slot)) {
			end(call, slot);
			ended++;
		}
	}
	return ended;
}

/* Waits until something may be free again. Return: false at the deadline. */
static bool wait_for_room(struct memsluice_dsa_call *call)
{
	if (reap(call))
		return true;
	if (ktime_get_ns() >= call->deadline_ns)
		return false;
	usleep_range(ROOM_US, 2 * ROOM_US);
	return true;
}

static struct memsluice_dsa_slot *wait_for_slot(struct memsluice_dsa_call *call,
						struct memsluice_dsa_queue *queue)
{
	struct memsluice_dsa_slot *slot;

	/* What would only be late is not begun. */
	if (ktime_get_ns() >= call->deadline_ns)
		return ERR_PTR(-ETIMEDOUT);
	do {
		slot = memsluice_dsa_slot_get(queue);
	} while (slot == ERR_PTR(-EAGAIN) && wait_for_room(call));
	return slot == ERR_PTR(-EAGAIN) ? ERR_PTR(-ETIMEDOUT) : slot;
}

static int submit(struct memsluice_dsa_call *call, struct memsluice_dsa_slot *slot)
{
	struct memsluice_dsa_queue *queue = slot->queue;
	int err = idxd_submit_desc(queue->wq, slot->desc);

	if (err)
		return err;
	list_add_tail(&slot->link, &call->under_way);
	spin_lock(&queue->lock);
	queue->counts.descriptors++;
	queue->counts.batches += !!slot->list;
	spin_unlock(&queue->lock);
	return 0;
}

static void submit_move(struct memsluice_dsa_call *call, struct memsluice_dsa_queue *queue,
			const struct memsluice_dsa_piece *piece)
{
	struct memsluice_dsa_slot *slot = wait_for_slot(call, queue);
	struct dsa_hw_desc *hw;
	int err;

	if (IS_ERR(slot)) {
		give_up(call, queue, piece, PTR_ERR(slot));
		return;
	}
	slot->piece = *piece;
	hw = slot->desc->hw;
	hw->opcode = DSA_OPCODE_MEMMOVE;
	hw->src_addr = piece->source_dma;
	hw->dst_addr = piece->destination_dma;
	hw->xfer_size = piece->bytes;
	err = submit(call, slot);
	if (err) {
		give_up(call, queue, piece, err);
		memsluice_dsa_slot_free(slot);
	}
}

static void fill_list(struct memsluice_dsa_list *list)
{
	u32 i;

	for (i = 0; i < list->count; i++) {
		list->entries[i] = (struct dsa_hw_desc){
			.opcode = DSA_OPCODE_MEMMOVE,
			.flags = IDXD_OP_FLAG_CRAV,
			.completion_addr = list->records_dma + i * sizeof(*list->records),
			.src_addr = list->pieces[i].source_dma,
			.dst_addr = list->pieces[i].destination_dma,
			.xfer_size = list->pieces[i].bytes,
		};
		list->records[i].status = 0;
	}
}

static void submit_batch(struct memsluice_dsa_call *call, struct memsluice_dsa_queue *queue,
			 struct memsluice_dsa_list *list)
{
	struct memsluice_dsa_slot *slot = wait_for_slot(call, queue);
	struct dsa_hw_desc *hw;
	int err;

	if (IS_ERR(slot)) {
		give_up_list(call, queue, list, PTR_ERR(slot));
		memsluice_dsa_list_put(queue, list);
		return;
	}
	fill_list(list);
	slot->list = list;
	hw = slot->desc->hw;
	hw->opcode = DSA_OPCODE_BATCH;
	hw->desc_list_addr = list->entries_dma;
	hw->desc_count = list->count;
	err = submit(call, slot);
	if (err) {
		give_up_list(call, queue, list, err);
		memsluice_dsa_slot_free(slot);
	}
}

/* Return: false, and its folio has failed. */
static bool begin_piece(struct memsluice_dsa_call *call, unsigned int queue,
			const struct memsluice_plan_piece *planned,
			struct memsluice_dsa_piece *piece)
{
	const struct memsluice_copy *copy = &call->copies[planned->folio];
	int err;

	*piece = (struct memsluice_dsa_piece){
		.destination = copy->destination,
		.folio = planned->folio,
		.offset_bytes = planned->offset_bytes,
		.bytes = planned->bytes,
	};
	err = memsluice_dsa_map(call->queues[queue], copy->source, piece);
	if (err)
		fail(call, piece, err);
	return !err;
}

static void alone(void *context, unsigned int queue, const struct memsluice_plan_piece *planned)
{
	struct memsluice_dsa_call *call = context;
	struct memsluice_dsa_piece piece;

	if (begin_piece(call, queue, planned, &piece))
		submit_move(call, call->queues[queue], &piece);
}

static void grouped(void *context, unsigned int queue, const struct memsluice_plan_piece *planned)
{
	struct memsluice_dsa_call *call = context;
	struct memsluice_dsa_list **list = &call->open[queue];
	struct memsluice_dsa_piece piece;

	if (!begin_piece(call, queue, planned, &piece))
		return;
	while (!*list && !(*list = memsluice_dsa_list_get(call->queues[queue]))) {
		if (!wait_for_room(call)) {
			give_up(call, call->queues[queue], &piece, -ETIMEDOUT);
			return;
		}
	}
	(*list)->pieces[(*list)->count++] = piece;
}

static void close(void *context, unsigned int queue, u32 unused)
{
	struct memsluice_dsa_call *call = context;
	struct memsluice_dsa_list *list = call->open[queue];

	call->open[queue] = NULL;
	if (!list) /* none was free until the deadline */
		return;
	if (list->count > 1) {
		submit_batch(call, call->queues[queue], list);
		return;
	}
	submit_move(call, call->queues[queue], &list->pieces[0]);
	memsluice_dsa_list_put(call->queues[queue], list);
}

static const struct memsluice_plan_sink sink = {
	.alone = alone,
	.grouped = grouped,
	.close = close,
};

/* Return: false when too many are to come already: they have been lost, or will be soon. */
static bool expect_interrupt(struct memsluice_dsa_slot *slot, struct completion *waiter)
{
	struct memsluice_dsa_queue *queue = slot->queue;
	bool may;

	spin_lock(&queue->lock);
	may = queue->interrupts < INTERRUPTS_MAX;
	queue->interrupts += may;
	slot->interrupts = may;
	slot->waiter = may ? waiter : NULL;
	spin_unlock(&queue->lock);
	return may;
}

static void interrupt_came(struct memsluice_dsa_slot *slot)
{
	struct memsluice_dsa_queue *queue = slot->queue;

	spin_lock(&queue->lock);
	queue->interrupts -= slot->interrupts;
	slot->interrupts = false;
	if (slot->waiter)
		complete(slot->waiter);
	slot->waiter = NULL;
	spin_unlock(&queue->lock);
}

void memsluice_dsa_drained(struct memsluice_dsa_queue *queue, struct idxd_desc *desc)
{
	interrupt_came(&queue->slots[desc->id]);
}

static bool submit_drain(struct memsluice_dsa_call *call, struct memsluice_dsa_queue *queue,
			 struct memsluice_dsa_slot **drain)
{
	struct memsluice_dsa_slot *slot = memsluice_dsa_slot_get(queue);

	if (IS_ERR(slot))
		return false;
	slot->desc->hw->opcode = DSA_OPCODE_DRAIN;
	slot->desc->hw->flags |= IDXD_OP_FLAG_RCI;
	if (!expect_interrupt(slot, &call->woken))
		goto free;
	if (!idxd_submit_desc(queue->wq, slot->desc)) {
		*drain = slot;
		return true;
	}
	interrupt_came(slot);
free:
	memsluice_dsa_slot_free(slot);
	return false;
}

/*
 * A DRAIN ends after all that its queue got before it. So nobody is interrupted while copies are
 * short, and once for each queue when they are long. Where no interrupt will come, who waits looks
 * himself.
 */
static void ask_for_interrupts(struct memsluice_dsa_call *call)
{
	unsigned int i;

	call->interrupts_come = true;
	for (i = 0; i < call->queue_count; i++)
		call->interrupts_come &= submit_drain(call, call->queues[i], &call->drains[i]);
	call->result.slept = true;
}

/* They end when they end; idxd frees them. */
static void forget_interrupts(struct memsluice_dsa_call *call)
{
	unsigned int i;

	for (i = 0; i < call->queue_count; i++) {
		struct memsluice_dsa_slot *slot = call->drains[i];

		if (!slot)
			continue;
		spin_lock(&call->queues[i]->lock);
		if (slot->waiter == &call->woken)
			slot->waiter = NULL;
		spin_unlock(&call->queues[i]->lock);
	}
}

static void sleep_until_woken(struct memsluice_dsa_call *call, u64 left_ns)
{
	if (call->interrupts_come)
		wait_for_completion_timeout(&call->woken,
					    nsecs_to_jiffies(min(left_ns, LOOK_NS)) + 1);
	else
		usleep_range(LOOK_SOON_US, 2 * LOOK_SOON_US);
}

/* Until nothing is under way, or the deadline. */
static void wait(struct memsluice_dsa_call *call)
{
	u64 spin_ns = (u64)READ_ONCE(memsluice_dsa_spin_us) * NSEC_PER_USEC;
	u64 now_ns = ktime_get_ns();
	/* Who will have to sleep anyway does so at once. */
	u64 spin_until_ns = call->expected_ns > spin_ns ? 0 : now_ns + spin_ns;

	for (;;) {
		reap(call);
		now_ns = ktime_get_ns();
		if (list_empty(&call->under_way) || now_ns >= call->deadline_ns)
			return;
		if (now_ns < spin_until_ns) {
			cpu_relax();
			continue;
		}
		if (!call->result.slept)
			ask_for_interrupts(call);
		sleep_until_woken(call, call->deadline_ns - now_ns);
	}
}

/* The folio outlives the call: the device may write to it for as long as it likes. */
static void keep(struct memsluice_dsa_call *call, const struct memsluice_dsa_piece *piece)
{
	folio_get(piece->destination);
	call->copies[piece->folio].error = -ETIMEDOUT;
	call->copies[piece->folio].late = true;
}

static void give_to_queue(struct memsluice_dsa_call *call, struct memsluice_dsa_slot *slot)
{
	struct memsluice_dsa_queue *queue = slot->queue;
	const struct memsluice_dsa_piece *pieces;
	bool first;
	u32 count;

	pieces = memsluice_dsa_slot_pieces(slot, &count);
	while (count--)
		keep(call, &pieces[count]);
	list_del(&slot->link);
	spin_lock(&queue->lock);
	memsluice_dsa_keep_late(slot);
	first = queue->state != MEMSLUICE_QUEUE_STUCK;
	queue->state = MEMSLUICE_QUEUE_STUCK;
	spin_unlock(&queue->lock);
	memsluice_dsa_care_soon();
	if (first)
		pr_err("%s: a copy did not end in time: the CPU copies instead, to other pages; those of the copy are kept from everybody until it ends or the device is reset\n",
		       memsluice_dsa_name(queue));
}

static void add_up(struct memsluice_dsa_call *call)
{
	unsigned int i;

	for (i = 0; i < call->count; i++) {
		const struct memsluice_copy *copy = &call->copies[i];

		if (copy->error)
			call->result.failed++;
		else
			call->result.bytes += folio_size(copy->destination);
		call->result.late += copy->late;
	}
}

struct memsluice_dsa_call_result memsluice_dsa_call_run(struct memsluice_dsa_call *call)
{
	struct memsluice_dsa_slot *slot, *next;
	unsigned int i;
	u64 began_ns;

	lockdep_assert_held(&memsluice_dsa_queues_lock);
	call->result = (struct memsluice_dsa_call_result){};
	for (i = 0; i < call->queue_count; i++) {
		call->limits[i].max_transfer_bytes = call->queues[i]->max_transfer_bytes;
		call->limits[i].max_batch = call->queues[i]->max_batch;
		call->open[i] = NULL;
		call->drains[i] = NULL;
	}
	call->plan.queues = call->limits;
	call->plan.queue_count = call->queue_count;
	call->plan.alone_bytes = ALONE_BYTES;
	call->plan.sink = &sink;
	call->plan.context = call;
	INIT_LIST_HEAD(&call->under_way);
	init_completion(&call->woken);
	began_ns = ktime_get_ns();
	call->deadline_ns = began_ns + (u64)READ_ONCE(memsluice_dsa_deadline_us) * NSEC_PER_USEC;

	for (i = 0; i < call->count; i++) {
		call->copies[i].error = 0;
		call->copies[i].late = false;
	}
	memsluice_plan_begin(&call->plan);
	for (i = 0; i < call->count; i++)
		memsluice_plan_add(&call->plan, folio_size(call->copies[i].destination));
	memsluice_plan_end(&call->plan);
	call->result.submit_ns = ktime_get_ns() - began_ns;
	wait(call);
	forget_interrupts(call);
	list_for_each_entry_safe(slot, next, &call->under_way, link)
		give_to_queue(call, slot);
	add_up(call);
	return call->result;
}
