// SPDX-License-Identifier: GPL-2.0
#include "kernel/hotness/scan.h"

#include <linux/cgroup.h>
#include <linux/hugetlb.h>
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/mmu_notifier.h>
#include <linux/page_idle.h>
#include <linux/pagewalk.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "kernel/abi/trace.h"
#include "kernel/compat/memory_tiers.h"
#include "kernel/compat/pause.h"
#include "kernel/compat/symbols.h"
#include "kernel/hotness/regions.h"

/* Walked under one hold of the mmap lock, and then flushed from the TLBs at once. */
#define SLICE_BYTES (32UL << PMD_SHIFT)

unsigned int memsluice_scan_period_ms = 1000;
unsigned int memsluice_scan_cpu_percent = 5;
unsigned int memsluice_cooling_scans = 8;

static struct task_struct *thread;
static bool secondary_tables;

struct round {
	u32 scan; /* serial number, never 0 */
	u32 clock;
	bool cools; /* it is the first of its clock */
	nodemask_t fast;
	u64 begun_ns;
	u64 cpu_begun_ns;
};

struct walk {
	struct memsluice_space *space;
	const struct round *round;
	struct memsluice_owner owner;
	struct memsluice_scan_result *result;
	bool cleared; /* a bit has been cleared since the last flush */
};

static u64 cpu_ns(void)
{
	/* Brought up to date whenever the thread is switched, and by each tick. */
	return current->se.sum_exec_runtime;
}

/* Sleeps as long as the share of CPU used since the round began is above the budget. */
static void keep_budget(const struct round *round)
{
	u64 used_ns = cpu_ns() - round->cpu_begun_ns;
	u64 due_ns = div_u64(used_ns * 100, READ_ONCE(memsluice_scan_cpu_percent));
	u64 past_ns = ktime_get_ns() - round->begun_ns;

	cond_resched();
	if (due_ns > past_ns)
		memsluice_pause_ns(due_ns - past_ns);
}

static bool clear_young_secondary(struct mm_struct *mm, unsigned long address, unsigned long bytes)
{
	return secondary_tables && mm_has_notifiers(mm) &&
	       memsluice_call(__mmu_notifier_clear_young)(mm, address, address + bytes);
}

/* Under the page table lock, as all of the following. */
static void count_page(struct walk *walk, struct memsluice_region *region, int i, bool fast,
		       unsigned long pages)
{
	struct memsluice_histogram *histogram = fast ? &walk->result->fast : &walk->result->slow;

	region->state[i] = MEMSLUICE_PAGE_PRESENT | (fast ? MEMSLUICE_PAGE_FAST : 0);
	memsluice_histogram_add(histogram, region->count[i], pages);
	walk->result->scanned_pages += pages;
}

static void note(struct walk *walk, struct memsluice_region *region, int i, struct folio *folio,
		 unsigned long pages, bool young)
{
	if (young) {
		/* What was set before the first look tells no rate: it is only cleared. */
		if (region->state[i] & MEMSLUICE_PAGE_BEFORE)
			region->count[i] = memsluice_count_observe(region->count[i]);
		/* Reclaim looks at the same bit: hand on what has been taken from it. */
		folio_set_young(folio);
		walk->cleared = true;
	}
	count_page(walk, region, i, node_isset(folio_nid(folio), walk->round->fast), pages);
}

/*
 * A page that has not been accessed is where it was, and whose it was: its struct page need not be
 * read, which costs more memory traffic than all the rest of a scan. Only what we have tried to
 * move is looked at again, and once a cooling everything, in case somebody else has moved it.
 */
static bool is_known(const struct walk *walk, const struct memsluice_region *region, int i)
{
	return (region->state[i] & MEMSLUICE_PAGE_BEFORE) &&
	       !(region->state[i] & MEMSLUICE_PAGE_TRIED) && !walk->round->cools;
}

static bool is_ours(struct walk *walk, struct folio *folio)
{
	return !folio_is_zone_device(folio) && memsluice_owns(&walk->owner, folio);
}

/* The accessed bit of a huge page is the OR of those of its parts, and so is what is known. */
static void become_huge(struct memsluice_region *region)
{
	int i;

	if (region->huge)
		return;
	region->huge = true;
	for (i = 1; i < MEMSLUICE_REGION_PAGES; i++) {
		region->count[0] = max(region->count[0], region->count[i]);
		region->state[i] = 0;
	}
}

/* The parts of a huge page that was split start with what is known of the whole. */
static void become_base(struct memsluice_region *region)
{
	int i;

	if (!region->huge)
		return;
	region->huge = false;
	for (i = 1; i < MEMSLUICE_REGION_PAGES; i++) {
		region->count[i] = region->count[0];
		region->state[i] = region->state[0];
	}
}

static void scan_huge(struct walk *walk, struct memsluice_region *region,
		      struct vm_area_struct *vma, unsigned long address, pmd_t *pmd)
{
	struct page *page;
	bool young;

	become_huge(region);
	if (!pmd_present(*pmd))
		return;
	young = pmd_young(*pmd) | clear_young_secondary(vma->vm_mm, address, PMD_SIZE);
	if (!young && is_known(walk, region, 0)) {
		count_page(walk, region, 0, region->state[0] & MEMSLUICE_PAGE_FAST, HPAGE_PMD_NR);
		return;
	}
	page = memsluice_call(vm_normal_page_pmd)(vma, address, *pmd);
	if (!page || !is_ours(walk, page_folio(page)))
		return;
	memsluice_call(pmdp_test_and_clear_young)(vma, address, pmd);
	note(walk, region, 0, page_folio(page), HPAGE_PMD_NR, young);
}

static void scan_base(struct walk *walk, struct memsluice_region *region,
		      struct vm_area_struct *vma, unsigned long address, pte_t *pte)
{
	int i = pte_index(address);
	pte_t entry = ptep_get(pte);
	struct folio *folio;
	bool young;

	if (!pte_present(entry)) {
		region->count[i] = 0;
		return;
	}
	young = pte_young(entry) | clear_young_secondary(vma->vm_mm, address, PAGE_SIZE);
	if (!young && is_known(walk, region, i)) {
		count_page(walk, region, i, region->state[i] & MEMSLUICE_PAGE_FAST, 1);
		return;
	}
	folio = memsluice_call(vm_normal_folio)(vma, address, entry);
	if (!folio || !is_ours(walk, folio)) {
		region->count[i] = 0;
		return;
	}
	memsluice_call(ptep_test_and_clear_young)(vma, address, pte);
	note(walk, region, i, folio, 1, young);
}

/* The first time that a round meets a region. */
static void begin_region(struct memsluice_region *region, const struct round *round)
{
	int i;

	memsluice_region_cool(region, round->clock);
	region->scan = round->scan;
	for (i = 0; i < MEMSLUICE_REGION_PAGES; i++) {
		u8 state = region->state[i];
		u8 kept = state & (MEMSLUICE_PAGE_FAST | MEMSLUICE_PAGE_TRIED);

		region->state[i] =
			state & MEMSLUICE_PAGE_PRESENT ? kept | MEMSLUICE_PAGE_BEFORE : 0;
	}
}

static int scan_pmd(pmd_t *pmd, unsigned long address, unsigned long end, struct mm_walk *mm_walk)
{
	struct walk *walk = mm_walk->private;
	struct memsluice_region *region;
	spinlock_t *lock;
	pte_t *first, *pte;

	region = memsluice_region_at(walk->space, address);
	if (!region)
		return -ENOMEM;
	if (region->scan != walk->round->scan)
		begin_region(region, walk->round);

	if (pmd_leaf(pmdp_get_lockless(pmd))) {
		lock = pmd_lock(mm_walk->mm, pmd);
		if (pmd_leaf(*pmd) || !pmd_present(*pmd)) {
			scan_huge(walk, region, mm_walk->vma, address & PMD_MASK, pmd);
			spin_unlock(lock);
			return 0;
		}
		spin_unlock(lock);
	}
	first = pte = memsluice_pte_lock(mm_walk->mm, pmd, address, &lock);
	if (!pte)
		return 0; /* it has just become another thing: the next round sees what */
	become_base(region);
	for (; address < end; address += PAGE_SIZE, pte++)
		scan_base(walk, region, mm_walk->vma, address, pte);
	pte_unmap_unlock(first, lock);
	return 0;
}

static int scan_vma(unsigned long start, unsigned long end, struct mm_walk *mm_walk)
{
	struct vm_area_struct *vma = mm_walk->vma;

	return is_vm_hugetlb_page(vma) || (vma->vm_flags & (VM_IO | VM_PFNMAP));
}

static const struct mm_walk_ops scan_ops = {
	.pmd_entry = scan_pmd,
	.test_walk = scan_vma,
	.walk_lock = PGWALK_RDLOCK,
};

/*
 * A TLB that still has an entry need not set its accessed bit again: without the flush the hottest
 * pages, never evicted, would look cold.
 */
static void flush_slice(struct walk *walk, unsigned long start, unsigned long end)
{
	if (walk->cleared)
		memsluice_call(flush_tlb_mm_range)(walk->space->mm, start, end, PAGE_SHIFT, false);
	walk->cleared = false;
}

/* Walks one slice. Return: where the next one starts, 0 at the end of the address space. */
static unsigned long scan_slice(struct walk *walk, unsigned long start)
{
	struct memsluice_space *space = walk->space;
	struct vm_area_struct *vma;
	unsigned long end = 0;

	if (!mmget_not_zero(space->mm))
		return 0;
	mmap_read_lock(space->mm);
	vma = find_vma(space->mm, start);
	if (vma) {
		start = max(start, vma->vm_start);
		end = min(ALIGN_DOWN(start, PMD_SIZE) + SLICE_BYTES, space->mm->task_size);
		mutex_lock(&space->lock);
		walk->owner.last = NULL;
		memsluice_call(walk_page_range)(space->mm, start, end, &scan_ops, walk);
		mutex_unlock(&space->lock);
		flush_slice(walk, start, end);
	}
	mmap_read_unlock(space->mm);
	mmput(space->mm);
	return end < space->mm->task_size ? end : 0;
}

static void scan_space(struct memsluice_space *space, const struct round *round,
		       struct memsluice_scan_result *result)
{
	struct walk walk = {
		.space = space,
		.round = round,
		.owner.tenant = space->tenant,
		.result = result,
	};
	unsigned long at = 0;

	do {
		at = scan_slice(&walk, at);
		keep_budget(round);
	} while (at && !kthread_should_stop());
	mutex_lock(&space->lock);
	memsluice_regions_forget(space, round->scan);
	mutex_unlock(&space->lock);
	result->processes++;
}

/* Scans all spaces of a tenant that the round has found, and publishes what they hold. */
static void scan_tenant(struct memsluice_tenant *tenant, struct round *round)
{
	struct memsluice_scan_result result = {};
	struct memsluice_space *space;
	u64 before_ns = cpu_ns(), used_us, serial = 0;

	while ((space = memsluice_space_next(tenant, serial)) && !kthread_should_stop()) {
		serial = space->serial;
		if (space->scan == round->scan)
			scan_space(space, round, &result);
		memsluice_space_put(space);
	}
	if (kthread_should_stop())
		return;
	used_us = div_u64(cpu_ns() - before_ns, NSEC_PER_USEC);

	spin_lock(&tenant->lock);
	result.scans = tenant->result.scans + 1;
	result.scanned_pages += tenant->result.scanned_pages;
	result.scan_cpu_us = tenant->result.scan_cpu_us + used_us;
	tenant->result = result;
	spin_unlock(&tenant->lock);
	trace_memsluice_scan(tenant->cgroup_id, memsluice_histogram_pages(&result.fast),
			     memsluice_histogram_pages(&result.slow), used_us);
}

struct found {
	struct mm_struct *mm;
	struct memsluice_tenant *tenant;
};

/* Context: RCU read side. */
static struct memsluice_tenant *tenant_of_task(struct task_struct *task)
{
	return memsluice_tenant_of(task_css_check(task, memory_cgrp_id, true)->cgroup);
}

/* Adds the process's mm, with references, if it has one and belongs to a tenant. */
static bool find_process(struct task_struct *process, struct found *found)
{
	struct task_struct *task;

	/* A leader may have exited before its threads. */
	for_each_thread(process, task)
	{
		bool has;

		task_lock(task);
		has = task->mm && !(task->flags & PF_KTHREAD);
		if (has) {
			found->mm = task->mm;
			mmgrab(found->mm);
		}
		task_unlock(task);
		if (!has)
			continue;
		found->tenant = tenant_of_task(task);
		if (!found->tenant)
			mmdrop(found->mm);
		return found->tenant;
	}
	return false;
}

/* Return: how many of @room were filled; @more is set when that was not enough. */
static unsigned int find_processes(struct found *found, unsigned int room, bool *more)
{
	struct task_struct *process;
	unsigned int count = 0;

	*more = false;
	rcu_read_lock();
	for_each_process(process)
	{
		if (count == room) {
			*more = true;
			break;
		}
		if (find_process(process, &found[count]))
			count++;
	}
	rcu_read_unlock();
	return count;
}

static void keep_found(struct found *found, unsigned int count, u32 scan)
{
	struct memsluice_space *space;
	unsigned int i;

	for (i = 0; i < count; i++) {
		space = memsluice_space_find(found[i].mm, found[i].tenant);
		if (space) {
			space->scan = scan;
			memsluice_space_put(space);
		}
		mmdrop(found[i].mm);
		memsluice_tenant_put(found[i].tenant);
	}
}

/* Marks the spaces of all processes of all tenants with the round's number, if memory allows. */
static bool find_spaces(u32 scan)
{
	static unsigned int room = 256;
	struct found *found;
	unsigned int count;
	bool more = true;

	while (more) {
		found = kvmalloc_array(room, sizeof(*found), GFP_KERNEL);
		if (!found)
			return false;
		count = find_processes(found, room, &more);
		keep_found(found, count, scan);
		kvfree(found);
		if (more)
			room *= 2;
	}
	return true;
}

static void fast_nodes(nodemask_t *nodes)
{
	int nid;

	nodes_clear(*nodes);
	for_each_node_state(nid, N_MEMORY) {
		if (memsluice_node_is_fast(nid))
			node_set(nid, *nodes);
	}
}

static void scan_round(struct round *round)
{
	struct memsluice_tenant *tenant;
	u64 id = 0;

	round->begun_ns = ktime_get_ns();
	round->cpu_begun_ns = cpu_ns();
	if (!++round->scan)
		round->scan = 1;
	round->cools = !(round->scan % READ_ONCE(memsluice_cooling_scans));
	if (round->cools)
		round->clock++;
	fast_nodes(&round->fast);

	memsluice_tenants_sweep();
	if (!find_spaces(round->scan))
		return;
	memsluice_spaces_forget(round->scan);
	while ((tenant = memsluice_tenant_next(id)) && !kthread_should_stop()) {
		id = tenant->cgroup_id;
		scan_tenant(tenant, round);
		memsluice_tenant_put(tenant);
	}
}

static int scan_thread(void *unused)
{
	struct round round = {};
	u64 period_ns, past_ns;

	while (!kthread_should_stop()) {
		scan_round(&round);
		period_ns = (u64)READ_ONCE(memsluice_scan_period_ms) * NSEC_PER_MSEC;
		past_ns = ktime_get_ns() - round.begun_ns;
		if (past_ns < period_ns)
			memsluice_pause_ns(period_ns - past_ns);
	}
	return 0;
}

int memsluice_scan_start(bool secondary)
{
	secondary_tables = secondary;
	thread = kthread_run(scan_thread, NULL, "memsluice_scan");
	return PTR_ERR_OR_ZERO(thread);
}

void memsluice_scan_stop(void)
{
	kthread_stop(thread);
	memsluice_spaces_forget(0);
}
