// SPDX-License-Identifier: GPL-2.0
#include "kernel/tier/threads.h"

#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>

#include "kernel/abi/trace.h"
#include "kernel/compat/memory_tiers.h"
#include "kernel/compat/pause.h"
#include "kernel/hotness/regions.h"
#include "kernel/migrate/collect.h"
#include "kernel/tier/policy.h"

#define BATCH_UNITS 256
#define BATCH_PAGES (4 * HPAGE_PMD_NR)
#define PAGES_PER_MIB (SZ_1M >> PAGE_SHIFT)

unsigned int memsluice_tier_period_ms = 500;
unsigned int memsluice_fast_free_low_percent = 2;
unsigned int memsluice_fast_free_high_percent = 3;

static struct task_struct *promoter;
static struct task_struct *demoter;

/* One thread's work on one tenant. */
struct job {
	struct memsluice_tenant *tenant;
	enum memsluice_why why;
	u32 bin; /* promotion: from here up; demotion: from here down */
	u64 pages; /* still to move */
	u64 moved;
	struct memsluice_counts counts; /* of the batch at hand */
};

/* Pages of one space that are to be moved. */
struct batch {
	struct memsluice_space *space;
	unsigned long next_region;
	unsigned int units;
	u64 address[BATCH_UNITS];
	u64 pages;
	nodemask_t allowed;
};

static bool promotes(const struct job *job)
{
	return job->why == MEMSLUICE_WHY_PROMOTION;
}

static bool fits(const struct job *job, u32 count)
{
	u32 bin = memsluice_bin(count);

	return promotes(job) ? bin >= job->bin : bin <= job->bin;
}

/* Chosen once between two scans: what could not be moved is not tried again and again. */
static bool choose(const struct job *job, struct memsluice_region *region, unsigned int i)
{
	u8 wanted = MEMSLUICE_PAGE_PRESENT | (promotes(job) ? 0 : MEMSLUICE_PAGE_FAST);

	if (region->state[i] != wanted || !fits(job, region->count[i]))
		return false;
	region->state[i] |= MEMSLUICE_PAGE_TRIED;
	return true;
}

static bool is_full(const struct job *job, const struct batch *batch)
{
	return batch->units == BATCH_UNITS || batch->pages >= BATCH_PAGES ||
	       batch->pages >= job->pages;
}

/* Return: true when the whole region has been looked at. */
static bool choose_in_region(const struct job *job, struct batch *batch,
			     struct memsluice_region *region, unsigned long start)
{
	unsigned int i, units = region->huge ? 1 : MEMSLUICE_REGION_PAGES;

	for (i = 0; i < units; i++) {
		if (is_full(job, batch))
			return false;
		if (!choose(job, region, i))
			continue;
		batch->address[batch->units++] = start + i * PAGE_SIZE;
		batch->pages += region->huge ? HPAGE_PMD_NR : 1;
	}
	return true;
}

/* Fills the batch. Return: false when nothing is left to choose in the space. */
static bool choose_batch(const struct job *job, struct batch *batch)
{
	struct memsluice_region *region;
	unsigned long index;

	batch->units = 0;
	batch->pages = 0;
	mutex_lock(&batch->space->lock);
	xa_for_each_start(&batch->space->regions, index, region, batch->next_region)
	{
		batch->next_region = index;
		if (!choose_in_region(job, batch, region, index << MEMSLUICE_REGION_SHIFT))
			break;
	}
	mutex_unlock(&batch->space->lock);
	return batch->units;
}

static bool is_wanted(struct folio *folio, void *owner)
{
	return memsluice_owns(owner, folio);
}

/* Moves those pages of the batch that are on one node, as many at a time as may be isolated. */
static void move_from(struct job *job, const struct batch *batch, int source, int target)
{
	struct memsluice_move_order order = { .target_node = target, .why = job->why };
	struct memsluice_owner owner = { .tenant = job->tenant };
	struct memsluice_collect collect = {
		.target_node = target,
		.source_node = source,
		.shared = true,
		.wanted = is_wanted,
		.private = &owner,
		.room_pages = min(BATCH_PAGES, memsluice_isolation_room(source)),
		.folios = LIST_HEAD_INIT(collect.folios),
		.counts = &job->counts,
	};
	unsigned int at;
	long done;

	for (at = 0; at < batch->units; at += done) {
		done = memsluice_collect_addresses(&collect, batch->space->mm, batch->address + at,
						   batch->units - at, NULL);
		if (done <= 0)
			break;
		if (!list_empty(&collect.folios))
			memsluice_move(&collect.folios, &order, &job->counts, NULL);
		collect.pages = 0;
	}
}

static void move_batch(struct job *job, const struct batch *batch)
{
	int nid, target;

	for_each_node_state(nid, N_MEMORY) {
		if (memsluice_node_is_fast(nid) == promotes(job))
			continue;
		target = promotes(job) ? memsluice_promotion_target(nid, &batch->allowed) :
					 memsluice_demotion_target(nid, &batch->allowed);
		if (target != NUMA_NO_NODE)
			move_from(job, batch, nid, target);
	}
	job->pages -= min(job->pages, job->counts.moved);
	job->moved += job->counts.moved;
}

/* The nodes that the owner of an address space may use. */
static void allowed_nodes(struct mm_struct *mm, nodemask_t *nodes)
{
	struct task_struct *owner;

	rcu_read_lock();
	owner = rcu_dereference(mm->owner);
	if (owner)
		get_task_struct(owner);
	rcu_read_unlock();
	if (!owner) {
		*nodes = node_states[N_MEMORY];
		return;
	}
	memsluice_allowed_nodes(owner, nodes);
	put_task_struct(owner);
}

/* What has been moved counts at once: the next plan must not order it again. */
static void account(struct job *job)
{
	struct memsluice_tenant *tenant = job->tenant;
	u64 moved = job->counts.moved;
	int i;

	atomic64_add(moved, promotes(job) ? &tenant->promoted_pages : &tenant->demoted_pages);
	for (i = 0; i < MEMSLUICE_REFUSALS; i++)
		atomic64_add(job->counts.refused[i], &tenant->refused_pages[i]);

	spin_lock(&tenant->lock);
	if (promotes(job)) {
		memsluice_histogram_move(&tenant->result.slow, &tenant->result.fast, moved, true);
		memsluice_rate_take(&tenant->promote_rate, moved);
	} else {
		memsluice_histogram_move(&tenant->result.fast, &tenant->result.slow, moved, false);
		memsluice_rate_take(&tenant->demote_rate, moved);
	}
	spin_unlock(&tenant->lock);
	memset(&job->counts, 0, sizeof(job->counts));
}

static void work_on_space(struct job *job, struct memsluice_space *space, struct batch *batch)
{
	batch->space = space;
	batch->next_region = 0;
	if (!mmget_not_zero(space->mm))
		return;
	allowed_nodes(space->mm, &batch->allowed);
	while (job->pages && !kthread_should_stop() && choose_batch(job, batch)) {
		move_batch(job, batch);
		account(job);
		cond_resched();
	}
	mmput_async(space->mm);
}

static void run(struct job *job, struct batch *batch)
{
	u64 planned = job->pages, serial = 0;
	struct memsluice_space *space;

	if (!job->pages)
		return;
	while (job->pages && !kthread_should_stop() &&
	       (space = memsluice_space_next(job->tenant, serial))) {
		serial = space->serial;
		work_on_space(job, space, batch);
		memsluice_space_put(space);
	}
	trace_memsluice_tier(job->tenant->cgroup_id, promotes(job), job->bin, planned, job->moved);
}

/* Tier 0 as a whole, and what all tenants have in it. */
struct fast_tier {
	u64 room_pages;
	u64 deficit_pages;
	u64 tenants_pages;
};

static struct fast_tier look_at_fast_tier(void)
{
	u64 managed = 0, free = 0, low, high, id = 0;
	struct fast_tier tier = {};
	struct memsluice_tenant *tenant;
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		struct memsluice_node_memory memory;

		if (!memsluice_node_is_fast(nid))
			continue;
		memory = memsluice_node_memory(nid);
		managed += memory.managed_pages;
		free += memory.free_pages;
	}
	low = managed * READ_ONCE(memsluice_fast_free_low_percent) / 100;
	high = managed * READ_ONCE(memsluice_fast_free_high_percent) / 100;
	if (free > high)
		tier.room_pages = free - high;
	if (free < low)
		tier.deficit_pages = high - free;
	while ((tenant = memsluice_tenant_next(id))) {
		id = tenant->cgroup_id;
		spin_lock(&tenant->lock);
		tier.tenants_pages += memsluice_histogram_pages(&tenant->result.fast);
		spin_unlock(&tenant->lock);
		memsluice_tenant_put(tenant);
	}
	return tier;
}

static u64 limit_pages(const struct memsluice_policy *policy)
{
	return policy->fast_limit_bytes == MEMSLUICE_NO_LIMIT ?
		       U64_MAX :
		       policy->fast_limit_bytes >> PAGE_SHIFT;
}

static struct memsluice_tier_plan plan(struct memsluice_tenant *tenant,
				       const struct fast_tier *tier, bool *enabled)
{
	struct memsluice_tier_state state = {};
	struct memsluice_tier_plan plan;
	u64 now_ns = ktime_get_ns(), usage;

	spin_lock(&tenant->lock);
	/* Both cannot say where a page lies. */
	*enabled = (tenant->policy.flags & MEMSLUICE_POLICY_TIERING) &&
		   !rcu_access_pointer(tenant->placed);
	state.fast = tenant->result.fast;
	state.slow = tenant->result.slow;
	state.fast_limit_pages = limit_pages(&tenant->policy);
	state.fast_room_pages = tier->room_pages;
	usage = memsluice_histogram_pages(&state.fast);
	if (tier->tenants_pages)
		state.fast_deficit_pages = tier->deficit_pages * usage / tier->tenants_pages;
	state.promote_budget_pages = memsluice_rate_refill(
		&tenant->promote_rate, (u64)tenant->policy.promote_mib_per_s * PAGES_PER_MIB,
		now_ns);
	state.demote_budget_pages = memsluice_rate_refill(
		&tenant->demote_rate, (u64)tenant->policy.demote_mib_per_s * PAGES_PER_MIB, now_ns);
	plan = memsluice_plan_tiers(&state);
	tenant->hot_bin = plan.hot_bin;
	tenant->cold_bin = plan.cold_bin;
	spin_unlock(&tenant->lock);
	return plan;
}

static void work_on_tenant(struct memsluice_tenant *tenant, enum memsluice_why why,
			   struct batch *batch)
{
	struct fast_tier tier = look_at_fast_tier();
	struct job job = { .tenant = tenant, .why = why };
	struct memsluice_tier_plan now;
	bool enabled;

	now = plan(tenant, &tier, &enabled);
	if (!enabled)
		return;
	job.bin = promotes(&job) ? now.promote_bin : now.demote_bin;
	job.pages = promotes(&job) ? now.promote_pages : now.demote_pages;
	run(&job, batch);
}

static int tier_thread(void *why)
{
	struct memsluice_tenant *tenant;
	struct batch *batch = kmalloc(sizeof(*batch), GFP_KERNEL);
	u64 id;

	while (batch && !kthread_should_stop()) {
		for (id = 0; !kthread_should_stop() && (tenant = memsluice_tenant_next(id));) {
			id = tenant->cgroup_id;
			work_on_tenant(tenant, (enum memsluice_why)(unsigned long)why, batch);
			memsluice_tenant_put(tenant);
		}
		memsluice_pause_ns((u64)READ_ONCE(memsluice_tier_period_ms) * NSEC_PER_MSEC);
	}
	kfree(batch);
	return 0;
}

int memsluice_tier_start(void)
{
	promoter = kthread_run(tier_thread, (void *)MEMSLUICE_WHY_PROMOTION, "memsluice_promote");
	if (IS_ERR(promoter))
		return PTR_ERR(promoter);
	demoter = kthread_run(tier_thread, (void *)MEMSLUICE_WHY_DEMOTION, "memsluice_demote");
	if (IS_ERR(demoter)) {
		kthread_stop(promoter);
		return PTR_ERR(demoter);
	}
	return 0;
}

void memsluice_tier_stop(void)
{
	kthread_stop(demoter);
	kthread_stop(promoter);
}
