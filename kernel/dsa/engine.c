// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/dsa/engine.h"

#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "kernel/dsa/call.h"

/* Who comes when so many are copying already lets the CPU copy. */
#define CALLS 8
#define RANK 10
#define TEST_FOLIOS 3

unsigned int memsluice_dsa_least_bytes = 32768; /* DSA-2LM, section 3: where DSA begins to pay */
bool memsluice_dsa_verify;

static struct memsluice_dsa_call *calls;
static unsigned long calls_used;

static DEFINE_SPINLOCK(counts_lock);
static struct {
	u64 calls;
	u64 bytes;
	u64 declined_small; /* calls that were left to the CPU: too few bytes, */
	u64 declined_busy; /* too many at once, or queues coming or going, */
	u64 declined_no_queue; /* no queue that works */
	u64 failed_folios;
	u64 late_folios;
	u64 differing_folios; /* found by verify */
	u64 slept; /* calls that waited for an interrupt */
	u64 ns_per_mib; /* of one queue, as learned from the last calls */
} counts = { .ns_per_mib = 100000 };

static struct memsluice_dsa_call *take_call(void)
{
	int i;

	for (i = 0; i < CALLS; i++) {
		if (!test_and_set_bit_lock(i, &calls_used))
			return &calls[i];
	}
	return NULL;
}

static void put_call(struct memsluice_dsa_call *call)
{
	clear_bit_unlock(call - calls, &calls_used);
}

/* @node: NUMA_NO_NODE for any. Return: how many there are. */
static unsigned int choose_of_node(struct memsluice_dsa_call *call, int node)
{
	struct memsluice_dsa_queue *queue;

	call->queue_count = 0;
	list_for_each_entry(queue, &memsluice_dsa_queues, link) {
		if (READ_ONCE(queue->state) == MEMSLUICE_DSA_UP &&
		    (node == NUMA_NO_NODE || queue->node == node) &&
		    call->queue_count < MEMSLUICE_PLAN_QUEUES_MAX)
			call->queues[call->queue_count++] = queue;
	}
	return call->queue_count;
}

/* Devices beside the destination first: what is written crosses no socket. */
static bool choose(struct memsluice_dsa_call *call)
{
	return choose_of_node(call, folio_nid(call->copies[0].destination)) ||
	       choose_of_node(call, folio_nid(call->copies[0].source)) ||
	       choose_of_node(call, NUMA_NO_NODE);
}

static unsigned int verify(struct memsluice_copy *copies, unsigned int count)
{
	unsigned int i, differing = 0;

	for (i = 0; i < count; i++) {
		struct folio *destination = copies[i].destination;

		if (copies[i].error || !memsluice_dsa_differs(copies[i].source, destination, 0,
							      folio_size(destination)))
			continue;
		copies[i].error = -EBADMSG;
		differing++;
	}
	if (differing)
		pr_err("%u folios differed from what they were copied from: the CPU copies them again\n",
		       differing);
	return differing;
}

static void count(const struct memsluice_dsa_call *call, u64 ns, unsigned int differing)
{
	u64 ns_per_mib;

	spin_lock(&counts_lock);
	counts.calls++;
	counts.bytes += call->result.bytes;
	counts.failed_folios += call->result.failed;
	counts.late_folios += call->result.late;
	counts.differing_folios += differing;
	counts.slept += call->result.slept;
	if (!call->result.failed) {
		ns_per_mib = div64_u64((ns * call->queue_count) << 20, call->result.bytes);
		ns_per_mib = min(ns_per_mib, 2 * counts.ns_per_mib + 1);
		counts.ns_per_mib = (7 * counts.ns_per_mib + ns_per_mib) / 8;
	}
	spin_unlock(&counts_lock);
}

static void decline(struct memsluice_copy *copies, unsigned int count, u64 *why)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		copies[i].error = -EAGAIN;
	spin_lock(&counts_lock);
	(*why)++;
	spin_unlock(&counts_lock);
}

static u64 bytes_of(const struct memsluice_copy *copies, unsigned int count)
{
	u64 bytes = 0;

	while (count--)
		bytes += folio_size(copies[count].destination);
	return bytes;
}

static void run(struct memsluice_dsa_call *call, u64 bytes)
{
	u64 began_ns = ktime_get_ns(), ns;
	unsigned int differing = 0;

	call->expected_ns =
		div_u64((bytes * READ_ONCE(counts.ns_per_mib)) >> 20, call->queue_count);
	memsluice_dsa_call_run(call);
	ns = ktime_get_ns() - began_ns;
	if (READ_ONCE(memsluice_dsa_verify))
		differing = verify(call->copies, call->count);
	count(call, ns, differing);
}

static void copy(struct memsluice_copy *copies, unsigned int count)
{
	u64 bytes = bytes_of(copies, count);
	struct memsluice_dsa_call *call;
	u64 *why = NULL;

	if (bytes < READ_ONCE(memsluice_dsa_least_bytes)) {
		decline(copies, count, &counts.declined_small);
		return;
	}
	/* The folios are unmapped: nobody may wait here for a queue that comes or goes. */
	if (!down_read_trylock(&memsluice_dsa_queues_lock)) {
		decline(copies, count, &counts.declined_busy);
		return;
	}
	call = take_call();
	if (!call) {
		why = &counts.declined_busy;
		goto unlock;
	}
	call->copies = copies;
	call->count = count;
	if (choose(call))
		run(call, bytes);
	else
		why = &counts.declined_no_queue;
	put_call(call);
unlock:
	up_read(&memsluice_dsa_queues_lock);
	if (why)
		decline(copies, count, why);
}

static void fill(struct page *page)
{
	void *bytes = kmap_local_page(page);

	get_random_bytes(bytes, PAGE_SIZE);
	kunmap_local(bytes);
}

static int run_test(struct memsluice_dsa_queue *queue, struct memsluice_copy *copies,
		    unsigned int count)
{
	struct memsluice_dsa_call *call = kvzalloc(sizeof(*call), GFP_KERNEL);
	int err = 0;

	if (!call)
		return -ENOMEM;
	call->copies = copies;
	call->count = count;
	call->queue_count = 1;
	call->queues[0] = queue;
	memsluice_dsa_call_run(call);
	if (call->result.late)
		err = -ETIMEDOUT;
	else if (call->result.failed)
		err = -EIO;
	else if (verify(copies, count))
		err = -EBADMSG;
	kvfree(call);
	return err;
}

static struct folio *new_folio(int node, gfp_t flags)
{
	struct page *page = alloc_pages_node(node, GFP_KERNEL | flags, 0);

	return page ? page_folio(page) : NULL;
}

int memsluice_dsa_engine_test(struct memsluice_dsa_queue *queue)
{
	struct memsluice_copy copies[TEST_FOLIOS] = {};
	int i, err = -ENOMEM;

	for (i = 0; i < TEST_FOLIOS; i++) {
		copies[i].source = new_folio(queue->node, 0);
		copies[i].destination = new_folio(queue->node, __GFP_ZERO);
		if (!copies[i].source || !copies[i].destination)
			goto free;
		fill(folio_page(copies[i].source, 0));
	}
	err = run_test(queue, copies, 1);
	if (!err)
		err = run_test(queue, copies + 1, TEST_FOLIOS - 1);
free:
	for (i = 0; i < TEST_FOLIOS; i++) {
		if (copies[i].source)
			folio_put(copies[i].source);
		if (copies[i].destination)
			folio_put(copies[i].destination);
	}
	return err;
}

static void show_queue(struct seq_file *file, struct memsluice_dsa_queue *queue)
{
	static const char *const states[] = { "up", "resting", "stuck" };
	struct memsluice_dsa_counts *now = &queue->counts;
	int status;

	spin_lock(&queue->lock);
	seq_printf(
		file,
		"queue %s node %d %s depth %u max_batch %u max_transfer_bytes %u descriptors %llu batches %llu bytes %llu errors %llu late %llu quarantined %llu\n",
		memsluice_dsa_name(queue), queue->node, states[queue->state], queue->slot_count,
		queue->max_batch, queue->max_transfer_bytes, now->descriptors, now->batches,
		now->bytes, now->errors, now->late, now->late - now->released);
	for (status = 0; status < ARRAY_SIZE(now->by_status); status++) {
		if (now->by_status[status])
			seq_printf(file, "status %s 0x%02x %llu\n", memsluice_dsa_name(queue),
				   status, now->by_status[status]);
	}
	spin_unlock(&queue->lock);
}

static void show(struct seq_file *file)
{
	struct memsluice_dsa_queue *queue;

	spin_lock(&counts_lock);
	seq_printf(
		file,
		"calls %llu\nbytes %llu\ndeclined_small %llu\ndeclined_busy %llu\ndeclined_no_queue %llu\nfailed_folios %llu\nlate_folios %llu\ndiffering_folios %llu\nslept %llu\nns_per_mib %llu\n",
		counts.calls, counts.bytes, counts.declined_small, counts.declined_busy,
		counts.declined_no_queue, counts.failed_folios, counts.late_folios,
		counts.differing_folios, counts.slept, counts.ns_per_mib);
	spin_unlock(&counts_lock);
	down_read(&memsluice_dsa_queues_lock);
	list_for_each_entry(queue, &memsluice_dsa_queues, link)
		show_queue(file, queue);
	up_read(&memsluice_dsa_queues_lock);
}

static struct memsluice_copy_engine engine = {
	.name = "dsa",
	.owner = THIS_MODULE,
	.rank = RANK,
	.copy = copy,
	.show = show,
};

int memsluice_dsa_engine_start(void)
{
	int err;

	calls = kvcalloc(CALLS, sizeof(*calls), GFP_KERNEL);
	if (!calls)
		return -ENOMEM;
	err = memsluice_copy_engine_register(&engine);
	if (err)
		kvfree(calls);
	return err;
}

void memsluice_dsa_engine_stop(void)
{
	memsluice_copy_engine_unregister(&engine);
	kvfree(calls);
}
