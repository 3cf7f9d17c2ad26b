// SPDX-License-Identifier: GPL-2.0
#include "kernel/migrate/requests.h"

#include <linux/cgroup.h>
#include <linux/math64.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "kernel/abi/trace.h"

/* Addresses whose pages are isolated in one round. */
#define ADDRESSES_AT_ONCE 512UL
/* Requests that have ended and are still shown. */
#define ENDED_MAX 32

static LIST_HEAD(requests);
static DEFINE_SPINLOCK(requests_lock);
static unsigned int ended_count;
static atomic64_t last_id;
static struct workqueue_struct *workers;

static void run_in_worker(struct work_struct *work)
{
	struct memsluice_request *request = container_of(work, struct memsluice_request, work);

	memsluice_request_run(request);
	memsluice_request_put(request);
}

/* What is moved is held while it is moved only: a request that has ended pins nothing. */
static void release_object(struct memsluice_request_spec *spec)
{
	if (spec->mm)
		mmdrop(spec->mm);
	if (spec->cgroup)
		cgroup_put(spec->cgroup);
	spec->mm = NULL;
	spec->cgroup = NULL;
}

static void release_spec(struct memsluice_request_spec *spec)
{
	release_object(spec);
	kvfree(spec->addresses);
	kvfree(spec->results);
}

static u64 pages_charged(struct cgroup *cgroup)
{
	struct cgroup_subsys_state *css;
	u64 pages;

	rcu_read_lock();
	css = rcu_dereference(cgroup->subsys[memory_cgrp_id]);
	pages = css ? page_counter_read(&mem_cgroup_from_css(css)->memory) : 0;
	rcu_read_unlock();
	return pages;
}

static u64 estimate_pages(const struct memsluice_request_spec *spec)
{
	switch (spec->kind) {
	case MEMSLUICE_MIGRATE_RANGE:
		/* What is mapped in all; a range may be the whole address space. */
		return min_t(u64, (spec->end - spec->start) >> PAGE_SHIFT, get_mm_rss(spec->mm));
	case MEMSLUICE_MIGRATE_ADDRESSES:
		return spec->count;
	case MEMSLUICE_MIGRATE_TENANT_NODE:
		return node_present_pages(spec->source_node);
	case MEMSLUICE_MIGRATE_TENANT_PLACED:
		return pages_charged(spec->cgroup);
	}
	return 0;
}

struct memsluice_request *memsluice_request_new(struct memsluice_request_spec *spec)
{
	struct memsluice_request *request = kzalloc(sizeof(*request), GFP_KERNEL_ACCOUNT);

	if (!request) {
		release_spec(spec);
		return ERR_PTR(-ENOMEM);
	}
	request->id = atomic64_inc_return(&last_id);
	request->spec = *spec;
	refcount_set(&request->references, 1);
	INIT_WORK(&request->work, run_in_worker);
	init_waitqueue_head(&request->ended);
	spin_lock_init(&request->lock);
	request->total_pages = estimate_pages(spec);

	refcount_inc(&request->references);
	spin_lock(&requests_lock);
	list_add_tail(&request->link, &requests);
	spin_unlock(&requests_lock);
	return request;
}

void memsluice_request_put(struct memsluice_request *request)
{
	if (!refcount_dec_and_test(&request->references))
		return;
	release_spec(&request->spec);
	kfree(request);
}

static void account(struct memsluice_request *request, struct memsluice_counts *counts)
{
	spin_lock(&request->lock);
	memsluice_counts_add(&request->counts, counts);
	spin_unlock(&request->lock);
	memset(counts, 0, sizeof(*counts));
}

/* Sleeps until no more has been moved since the request began than its rate allows. */
static void keep_rate(struct memsluice_request *request)
{
	u64 pages_per_s = (u64)request->spec.mib_per_s << (20 - PAGE_SHIFT);
	u64 due_ns, past_ns = ktime_get_ns() - request->begun_ns;

	if (!pages_per_s)
		return;
	due_ns = mul_u64_u64_div_u64(request->counts.moved, NSEC_PER_SEC, pages_per_s);
	if (due_ns > past_ns)
		wait_event_interruptible_timeout(request->ended, READ_ONCE(request->cancel),
						 nsecs_to_jiffies(due_ns - past_ns) + 1);
}

/* Between two batches, with nothing held. */
static bool goes_on(struct memsluice_request *request)
{
	keep_rate(request);
	cond_resched();
	return !READ_ONCE(request->cancel) && !signal_pending(current);
}

bool memsluice_request_goes_on(struct memsluice_request *request, struct memsluice_counts *counts)
{
	account(request, counts);
	return goes_on(request);
}

static void move_listed(struct memsluice_request *request, struct list_head *folios, int target,
			struct memsluice_counts *counts, struct xarray *refusals)
{
	const struct memsluice_request_spec *spec = &request->spec;
	struct memsluice_move_order order = {
		.target_node = target,
		.why = spec->target_of ? MEMSLUICE_WHY_PLACEMENT : MEMSLUICE_WHY_REQUEST,
		.in_tree = spec->in_tree,
	};

	if (!list_empty(folios))
		memsluice_move(folios, &order, counts, refusals);
}

static void move_collected(struct memsluice_request *request, struct memsluice_collect *collect,
			   struct xarray *refusals)
{
	int nid;

	if (collect->folios_to) {
		for_each_node_state(nid, N_MEMORY)
			move_listed(request, &collect->folios_to[nid], nid, collect->counts, NULL);
	} else {
		move_listed(request, &collect->folios, request->spec.target_node, collect->counts,
			    refusals);
	}
	collect->pages = 0;
	account(request, collect->counts);
}

static int run_range(struct memsluice_request *request, struct memsluice_collect *collect)
{
	const struct memsluice_request_spec *spec = &request->spec;
	int err;

	collect->next = spec->start;
	while (collect->next < spec->end) {
		if (!goes_on(request))
			return -EINTR;
		/* Held for one batch only: a process that exits meanwhile gives its memory back. */
		if (!mmget_not_zero(spec->mm))
			return -ESRCH;
		err = memsluice_collect_range(collect, spec->mm, collect->next, spec->end);
		mmput(spec->mm);
		if (err)
			return err;
		move_collected(request, collect, NULL);
	}
	return 0;
}

static int run_frames(struct memsluice_request *request, struct memsluice_collect *collect, int nid)
{
	const struct memsluice_request_spec *spec = &request->spec;
	unsigned long end = node_end_pfn(nid);

	collect->source_node = nid;
	collect->next = node_start_pfn(nid);
	while (collect->next < end) {
		if (!goes_on(request))
			return -EINTR;
		memsluice_collect_frames(collect, spec->cgroup, collect->next,
					 min(end, collect->next + PAGES_PER_SECTION));
		move_collected(request, collect, NULL);
	}
	return 0;
}

static int run_placed(struct memsluice_request *request, struct memsluice_collect *collect)
{
	const struct memsluice_request_spec *spec = &request->spec;
	int nid, err = 0;

	collect->folios_to = kmalloc_array(nr_node_ids, sizeof(*collect->folios_to), GFP_KERNEL);
	if (!collect->folios_to)
		return -ENOMEM;
	for (nid = 0; nid < nr_node_ids; nid++)
		INIT_LIST_HEAD(&collect->folios_to[nid]);
	collect->wanted = spec->is_of;
	collect->target_of = spec->target_of;
	collect->private = (void *)&spec->cgroup_id;
	for_each_node_state(nid, N_MEMORY) {
		if (spec->source_node != NUMA_NO_NODE && spec->source_node != nid)
			continue;
		err = run_frames(request, collect, nid);
		if (err)
			break;
	}
	kfree(collect->folios_to);
	return err;
}

/* What became of one page: its node now, or why it did not move. */
static s32 outcome(struct memsluice_request *request, const struct memsluice_named *named,
		   u64 address, struct xarray *refusals)
{
	int target = request->spec.target_node;
	unsigned long pfn = named->pfn;
	int nid = target;
	void *why;

	if (named->result)
		return named->result;
	if (!pfn)
		nid = memsluice_node_at(request->spec.mm, address, &pfn);
	if (nid == NUMA_NO_NODE)
		return -1 - MEMSLUICE_REFUSED_ABSENT;
	why = xa_load(refusals, pfn);
	if (why)
		return -1 - (int)xa_to_value(why);
	return nid == target ? nid : -1 - MEMSLUICE_REFUSED_BUSY;
}

/* Return: how many addresses from @from on are done with, or a negative errno. */
static long move_addresses(struct memsluice_request *request, struct memsluice_collect *collect,
			   struct memsluice_named *named, unsigned long from)
{
	const struct memsluice_request_spec *spec = &request->spec;
	unsigned long count = min(ADDRESSES_AT_ONCE, spec->count - from);
	struct xarray refusals;
	long done, i;

	if (!mmget_not_zero(spec->mm))
		return -ESRCH;
	xa_init(&refusals);
	done = memsluice_collect_addresses(collect, spec->mm, spec->addresses + from, count, named);
	move_collected(request, collect, &refusals);
	for (i = 0; spec->results && i < done; i++)
		spec->results[from + i] =
			outcome(request, &named[i], spec->addresses[from + i], &refusals);
	xa_destroy(&refusals);
	mmput(spec->mm);
	return done;
}

static int run_addresses(struct memsluice_request *request, struct memsluice_collect *collect)
{
	unsigned long at_once = min(ADDRESSES_AT_ONCE, request->spec.count), at = 0;
	struct memsluice_named *named = kmalloc_array(at_once, sizeof(*named), GFP_KERNEL);
	long done = 0;

	if (!named)
		return -ENOMEM;
	while (done >= 0 && at < request->spec.count) {
		done = goes_on(request) ? move_addresses(request, collect, named, at) : -EINTR;
		at += max(done, 0L);
	}
	kfree(named);
	return min(done, 0L);
}

/* Moved at once: what the rate allows in a tenth of a second, and a huge page at least. */
static unsigned long room_of_rate(const struct memsluice_request_spec *spec)
{
	unsigned long pages = ((unsigned long)spec->mib_per_s << (20 - PAGE_SHIFT)) / 10;

	return spec->mib_per_s ? max(pages, (unsigned long)HPAGE_PMD_NR) : ULONG_MAX;
}

static int run_kind(struct memsluice_request *request)
{
	const struct memsluice_request_spec *spec = &request->spec;
	struct memsluice_counts counts = {};
	struct memsluice_collect collect = {
		.target_node = spec->target_node,
		.source_node = spec->source_node,
		.shared = spec->all_mappings,
		.room_pages = min(memsluice_isolation_room(spec->source_node), room_of_rate(spec)),
		.folios = LIST_HEAD_INIT(collect.folios),
		.counts = &counts,
	};

	if (spec->do_instead)
		return spec->do_instead(spec->cgroup_id, request);
	memsluice_isolate_prepare();
	switch (spec->kind) {
	case MEMSLUICE_MIGRATE_RANGE:
		return run_range(request, &collect);
	case MEMSLUICE_MIGRATE_ADDRESSES:
		return run_addresses(request, &collect);
	case MEMSLUICE_MIGRATE_TENANT_NODE:
		return run_frames(request, &collect, spec->source_node);
	case MEMSLUICE_MIGRATE_TENANT_PLACED:
		return run_placed(request, &collect);
	}
	return -EINVAL;
}

/* Only the last few that have ended stay on the list. */
static void forget_oldest(void)
{
	struct memsluice_request *request, *oldest = NULL;

	spin_lock(&requests_lock);
	if (++ended_count > ENDED_MAX) {
		list_for_each_entry(request, &requests, link) {
			if (!memsluice_request_has_ended(request))
				continue;
			oldest = request;
			list_del(&request->link);
			ended_count--;
			break;
		}
	}
	spin_unlock(&requests_lock);
	if (oldest)
		memsluice_request_put(oldest);
}

void memsluice_request_run(struct memsluice_request *request)
{
	int err;

	request->begun_ns = ktime_get_ns();
	trace_memsluice_request_begin(request->id, request->spec.kind, request->spec.target_node);
	err = run_kind(request);
	trace_memsluice_request_end(request->id, err);
	release_object(&request->spec);

	spin_lock(&request->lock);
	if (!err)
		request->state = MEMSLUICE_REQUEST_DONE;
	else if (err == -EINTR)
		request->state = MEMSLUICE_REQUEST_CANCELLED;
	else
		request->state = MEMSLUICE_REQUEST_FAILED;
	request->error = err;
	request->total_pages = request->counts.seen;
	spin_unlock(&request->lock);
	forget_oldest();
	wake_up_all(&request->ended);
}

void memsluice_request_start(struct memsluice_request *request)
{
	refcount_inc(&request->references);
	queue_work(workers, &request->work);
}

void memsluice_request_cancel(struct memsluice_request *request)
{
	WRITE_ONCE(request->cancel, true);
	wake_up_all(&request->ended);
}

bool memsluice_request_has_ended(struct memsluice_request *request)
{
	bool ended;

	spin_lock(&request->lock);
	ended = request->state != MEMSLUICE_REQUEST_RUNNING;
	spin_unlock(&request->lock);
	return ended;
}

void memsluice_request_wait(struct memsluice_request *request)
{
	wait_event(request->ended, memsluice_request_has_ended(request));
}

void memsluice_request_status(struct memsluice_request *request,
			      struct memsluice_request_status *status)
{
	int i;

	spin_lock(&request->lock);
	status->id = request->id;
	status->state = request->state;
	status->error = request->error;
	status->total_pages = max(request->total_pages, request->counts.seen);
	status->seen_pages = request->counts.seen;
	status->moved_pages = request->counts.moved;
	status->already_there_pages = request->counts.already_there;
	for (i = 0; i < MEMSLUICE_REFUSALS; i++)
		status->refused_pages[i] = request->counts.refused[i];
	spin_unlock(&request->lock);
}

void memsluice_requests_each(void (*show)(struct memsluice_request *request, void *private),
			     void *private)
{
	struct memsluice_request *request;

	spin_lock(&requests_lock);
	list_for_each_entry(request, &requests, link)
		show(request, private);
	spin_unlock(&requests_lock);
}

int memsluice_requests_start(void)
{
	workers = alloc_workqueue("memsluice_requests", WQ_UNBOUND, 0);
	return workers ? 0 : -ENOMEM;
}

void memsluice_requests_stop(void)
{
	struct memsluice_request *request, *next;

	destroy_workqueue(workers);
	/* No file of ours is open any more: nobody but the list knows what is left on it. */
	list_for_each_entry_safe(request, next, &requests, link) {
		list_del(&request->link);
		memsluice_request_put(request);
	}
}
