// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/dsa/engine.h"

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/dsa/call.h"
#include "kernel/dsa/care.h"
#include "kernel/dsa/report.h"
#include "kernel/dsa/trace.h"
#include "kernel/dsa/trial.h"
#include "kernel/tenant/tenant.h"

/* Who comes when so many are copying already lets the CPU copy. */
#define CALLS 8
#define RANK 10

unsigned int memsluice_dsa_least_bytes = MEMSLUICE_DSA_LEAST_AUTO;
unsigned int memsluice_dsa_most_bytes = 8U << 20;
bool memsluice_dsa_verify;

static struct memsluice_dsa_call *calls;

static DEFINE_SPINLOCK(lock); /* all below */
static unsigned long calls_used;
static struct memsluice_share calls_share;
static struct memsluice_dsa_engine_counts counts = { .ns_per_mib = 100000 };

struct memsluice_dsa_engine_counts memsluice_dsa_engine_counts(void)
{
	struct memsluice_dsa_engine_counts now;

	spin_lock(&lock);
	now = counts;
	spin_unlock(&lock);
	return now;
}

static struct memsluice_dsa_call *take_call(u64 tenant)
{
	struct memsluice_dsa_call *call = NULL;

	spin_lock(&lock);
	if (memsluice_share_take(&calls_share, tenant, 1, CALLS, ktime_get_ns())) {
		call = &calls[ffz(calls_used)];
		__set_bit(call - calls, &calls_used);
	}
	spin_unlock(&lock);
	return call;
}

static void put_call(struct memsluice_dsa_call *call, u64 tenant)
{
	spin_lock(&lock);
	__clear_bit(call - calls, &calls_used);
	memsluice_share_give(&calls_share, tenant, 1);
	spin_unlock(&lock);
}

static bool take_share(struct memsluice_dsa_queue *queue, u64 tenant, u64 bytes)
{
	u64 most_bytes = READ_ONCE(memsluice_dsa_most_bytes);
	bool taken;

	spin_lock(&queue->lock);
	taken = memsluice_share_take(&queue->share, tenant, bytes, most_bytes, ktime_get_ns());
	spin_unlock(&queue->lock);
	return taken;
}

/* Of the first @count queues. */
static void give_shares(struct memsluice_dsa_call *call, unsigned int count, u64 tenant, u64 bytes)
{
	while (count--) {
		struct memsluice_dsa_queue *queue = call->queues[count];

		spin_lock(&queue->lock);
		memsluice_share_give(&queue->share, tenant, bytes);
		spin_unlock(&queue->lock);
	}
}

/* @bytes: of each queue, for the plan balances them. */
static bool take_shares(struct memsluice_dsa_call *call, u64 tenant, u64 bytes)
{
	unsigned int i;

	for (i = 0; i < call->queue_count; i++) {
		if (!take_share(call->queues[i], tenant, bytes)) {
			give_shares(call, i, tenant, bytes);
			return false;
		}
	}
	return true;
}

/* @node: NUMA_NO_NODE for any. Return: how many there are. */
static unsigned int choose_of_node(struct memsluice_dsa_call *call, int node)
{
	struct memsluice_dsa_queue *queue;

	call->queue_count = 0;
	list_for_each_entry(queue, &memsluice_dsa_queues, link) {
		if (memsluice_dsa_is_up(queue) && (node == NUMA_NO_NODE || queue->node == node) &&
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

	spin_lock(&lock);
	counts.calls++;
	counts.bytes += call->result.bytes;
	counts.failed_folios += call->result.failed;
	counts.late_folios += call->result.late;
	counts.differing_folios += differing;
	counts.submit_ns += call->result.submit_ns;
	counts.slept += call->result.slept;
	if (!call->result.failed) {
		ns_per_mib = div64_u64((ns * call->queue_count) << 20, call->result.bytes);
		ns_per_mib = min(ns_per_mib, 2 * counts.ns_per_mib + 1);
		counts.ns_per_mib = (7 * counts.ns_per_mib + ns_per_mib) / 8;
	}
	spin_unlock(&lock);
}

static void decline(struct memsluice_copy *copies, unsigned int count, u64 *why)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		copies[i].error = -EAGAIN;
	spin_lock(&lock);
	(*why)++;
	spin_unlock(&lock);
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
	trace_memsluice_dsa_call(call, ns);
}

/* Return: NULL, or the count of the reason why the CPU is to copy. */
static u64 *run_with_shares(struct memsluice_dsa_call *call, u64 tenant, u64 bytes)
{
	u64 part;

	if (!choose(call))
		return &counts.declined_no_queue;
	part = DIV_ROUND_UP_ULL(bytes, call->queue_count);
	if (!take_shares(call, tenant, part))
		return &counts.declined_share;
	run(call, bytes);
	give_shares(call, call->queue_count, tenant, part);
	return NULL;
}

static u64 *try(struct memsluice_copy *copies, unsigned int count, u64 bytes)
{
	/* Of those that move together all are of one tenant, or of one request. */
	u64 tenant = memsluice_tenant_id_of(copies[0].source);
	struct memsluice_dsa_call *call;
	u64 *why;

	/* The folios are unmapped: nobody may wait here for a queue that comes or goes. */
	if (!down_read_trylock(&memsluice_dsa_queues_lock))
		return &counts.declined_busy;
	call = take_call(tenant);
	if (!call) {
		why = &counts.declined_share;
	} else {
		call->copies = copies;
		call->count = count;
		why = run_with_shares(call, tenant, bytes);
		put_call(call, tenant);
	}
	up_read(&memsluice_dsa_queues_lock);
	return why;
}

u64 memsluice_dsa_least_bytes_now(void)
{
	unsigned int least_bytes = READ_ONCE(memsluice_dsa_least_bytes);

	return least_bytes == MEMSLUICE_DSA_LEAST_AUTO ?
		       READ_ONCE(memsluice_dsa_measured_least_bytes) :
		       least_bytes;
}

static void copy(struct memsluice_copy *copies, unsigned int count)
{
	u64 bytes = bytes_of(copies, count);
	u64 *why = bytes < memsluice_dsa_least_bytes_now() ? &counts.declined_small :
							     try(copies, count, bytes);

	if (why)
		decline(copies, count, why);
}

static int act(enum memsluice_engine_action action, const char *queue)
{
	switch (action) {
	case MEMSLUICE_ENGINE_TEST:
		return memsluice_dsa_test_queue(queue);
	case MEMSLUICE_ENGINE_DRAIN:
		return memsluice_dsa_drain_queue(queue);
	}
	return -EINVAL;
}

static struct memsluice_copy_engine engine = {
	.name = "dsa",
	.owner = THIS_MODULE,
	.rank = RANK,
	.copy = copy,
	.show = memsluice_dsa_show,
	.status = memsluice_dsa_status,
	.queue = memsluice_dsa_queue_at,
	.act = act,
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
