// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kernel/dsa/trial.h"

#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "kernel/dsa/call.h"

#define TRIAL_FOLIOS 3
#define MEASURE_FOLIOS 64
#define ROUNDS 5

unsigned int memsluice_dsa_measured_least_bytes = 32768;

static void fill(struct page *page)
{
	void *bytes = kmap_local_page(page);

	get_random_bytes(bytes, PAGE_SIZE);
	kunmap_local(bytes);
}

static struct folio *new_folio(int node, gfp_t flags)
{
	struct page *page = alloc_pages_node(node, GFP_KERNEL | flags, 0);

	return page ? page_folio(page) : NULL;
}

static void free_copies(struct memsluice_copy *copies, unsigned int count)
{
	while (count--) {
		if (copies[count].source)
			folio_put(copies[count].source);
		if (copies[count].destination)
			folio_put(copies[count].destination);
	}
	kvfree(copies);
}

/* Of base pages, on the queue's node. */
static struct memsluice_copy *new_copies(struct memsluice_dsa_queue *queue, unsigned int count)
{
	struct memsluice_copy *copies = kvcalloc(count, sizeof(*copies), GFP_KERNEL);
	unsigned int i;

	if (!copies)
		return NULL;
	for (i = 0; i < count; i++) {
		copies[i].source = new_folio(queue->node, 0);
		copies[i].destination = new_folio(queue->node, __GFP_ZERO);
		if (!copies[i].source || !copies[i].destination) {
			free_copies(copies, count);
			return NULL;
		}
		fill(folio_page(copies[i].source, 0));
	}
	return copies;
}

static int run(struct memsluice_dsa_call *call, struct memsluice_copy *copies, unsigned int count)
{
	call->copies = copies;
	call->count = count;
	memsluice_dsa_call_run(call);
	if (call->result.late)
		return -ETIMEDOUT;
	return call->result.failed ? -EIO : 0;
}

static int run_and_compare(struct memsluice_dsa_call *call, struct memsluice_copy *copies,
			   unsigned int count)
{
	int err = run(call, copies, count);

	while (!err && count--) {
		if (memsluice_dsa_differs(copies[count].source, copies[count].destination, 0,
					  PAGE_SIZE))
			err = -EBADMSG;
	}
	return err;
}

static struct memsluice_dsa_call *new_call(struct memsluice_dsa_queue *queue)
{
	struct memsluice_dsa_call *call = kvzalloc(sizeof(*call), GFP_KERNEL);

	if (!call)
		return NULL;
	call->queue_count = 1;
	call->queues[0] = queue;
	return call;
}

int memsluice_dsa_trial(struct memsluice_dsa_queue *queue)
{
	struct memsluice_copy *copies = new_copies(queue, TRIAL_FOLIOS);
	struct memsluice_dsa_call *call = new_call(queue);
	int err = -ENOMEM;

	if (copies && call)
		err = run_and_compare(call, copies, 1);
	if (!err)
		err = run_and_compare(call, copies + 1, TRIAL_FOLIOS - 1);
	kvfree(call);
	if (copies)
		free_copies(copies, TRIAL_FOLIOS);
	return err;
}

static int compare(const void *one, const void *other)
{
	u64 a = *(const u64 *)one, b = *(const u64 *)other;

	return a < b ? -1 : a > b;
}

static u64 median(u64 *values, unsigned int count)
{
	sort(values, count, sizeof(*values), compare, NULL);
	return values[count / 2];
}

/* Return: 0, or what the queue failed with. */
static int is_slower(struct memsluice_dsa_call *call, struct memsluice_copy *copies,
		     unsigned int count, bool *slower)
{
	u64 dsa_ns[ROUNDS], cpu_ns[ROUNDS];
	unsigned int round, i;

	for (round = 0; round < ROUNDS; round++) {
		u64 began_ns = ktime_get_ns(), between_ns;
		int err = run(call, copies, count);

		if (err)
			return err;
		between_ns = ktime_get_ns();
		for (i = 0; i < count; i++)
			folio_mc_copy(copies[i].destination, copies[i].source);
		cpu_ns[round] = ktime_get_ns() - between_ns;
		dsa_ns[round] = between_ns - began_ns;
	}
	*slower = median(dsa_ns, ROUNDS) > median(cpu_ns, ROUNDS);
	return 0;
}

/*
 * What is copied again and again is in the caches, which pages that move seldom are: if it errs, it
 * finds the CPU too fast. Beyond the largest list the CPU's time counts for more than the clock's.
 */
void memsluice_dsa_measure(struct memsluice_dsa_queue *queue)
{
	struct memsluice_copy *copies = new_copies(queue, MEASURE_FOLIOS);
	struct memsluice_dsa_call *call = new_call(queue);
	unsigned int count, least = 1;
	bool slower;
	int err = copies && call ? 0 : -ENOMEM;

	for (count = 1; !err && count < MEASURE_FOLIOS; count *= 2) {
		err = is_slower(call, copies, count, &slower);
		if (!err && slower)
			least = 2 * count;
	}
	if (!err)
		WRITE_ONCE(memsluice_dsa_measured_least_bytes, least << PAGE_SHIFT);
	kvfree(call);
	if (copies)
		free_copies(copies, MEASURE_FOLIOS);
}
