// SPDX-License-Identifier: GPL-2.0
#include "kernel/migrate/collect.h"

#include <linux/cgroup.h>
#include <linux/hugetlb.h>
#include <linux/memcontrol.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/pagewalk.h>

#include "kernel/compat/shared.h"
#include "kernel/compat/symbols.h"

static void refuse(struct memsluice_collect *collect, enum memsluice_refusal why,
		   unsigned long pages)
{
	collect->counts->refused[why] += pages;
}

/* The same is known of all pages of a range. */
static void name(struct memsluice_collect *collect, unsigned long address, unsigned long end,
		 struct memsluice_named what)
{
	if (!collect->named)
		return;
	for (; address < end; address += PAGE_SIZE)
		collect->named[(address - collect->named_start) >> PAGE_SHIFT] = what;
}

static struct memsluice_named refused_as(enum memsluice_refusal why)
{
	/* What is busy may be so because another address has named it before. */
	return (struct memsluice_named){ .result = why == MEMSLUICE_REFUSED_BUSY ? 0 : -1 - why };
}

/* What is larger than a page may be split meanwhile, and move in part. */
static struct memsluice_named found(struct folio *folio)
{
	return (struct memsluice_named){ .pfn = folio_test_large(folio) ? 0 : folio_pfn(folio) };
}

static struct list_head *list_to(struct memsluice_collect *collect, int target)
{
	return collect->folios_to ? &collect->folios_to[target] : &collect->folios;
}

static struct memsluice_named look_at(struct memsluice_collect *collect, struct folio *folio)
{
	unsigned long pages = folio_nr_pages(folio);
	int target = collect->target_node;
	enum memsluice_refusal why;

	if (collect->wanted && !collect->wanted(folio, collect->private))
		return refused_as(MEMSLUICE_REFUSED_ABSENT);
	if (collect->source_node != NUMA_NO_NODE && folio_nid(folio) != collect->source_node)
		return refused_as(MEMSLUICE_REFUSED_ABSENT);
	if (collect->target_of)
		target = collect->target_of(folio, collect->private);
	collect->counts->seen += pages;
	if (folio_nid(folio) == target) {
		collect->counts->already_there += pages;
		return found(folio);
	}
	if (target < 0) {
		why = -1 - target;
	} else if (folio_is_zone_device(folio)) {
		why = MEMSLUICE_REFUSED_UNMOVABLE;
	} else if (!collect->shared && memsluice_is_shared(folio)) {
		why = MEMSLUICE_REFUSED_SHARED;
	} else if (!memsluice_isolate(folio, list_to(collect, target))) {
		why = MEMSLUICE_REFUSED_BUSY;
	} else {
		collect->pages += pages;
		return found(folio);
	}
	refuse(collect, why, pages);
	return refused_as(why);
}

/*
 * Looks at a folio that cannot go away meanwhile, and is mapped from @address to @end. Return: true
 * when there is room for no more.
 */
static bool take(struct memsluice_collect *collect, struct folio *folio, unsigned long address,
		 unsigned long end)
{
	if (folio != collect->last) {
		collect->last = folio;
		collect->last_named = look_at(collect, folio);
	}
	name(collect, address, end, collect->last_named);
	return collect->pages >= collect->room_pages;
}

static bool take_huge(struct memsluice_collect *collect, struct vm_area_struct *vma,
		      unsigned long address, unsigned long end, pmd_t pmd)
{
	struct page *page;

	if (!pmd_present(pmd)) {
		collect->counts->seen += HPAGE_PMD_NR;
		refuse(collect, MEMSLUICE_REFUSED_BUSY, HPAGE_PMD_NR);
		name(collect, address, end, refused_as(MEMSLUICE_REFUSED_BUSY));
		return false;
	}
	page = memsluice_call(vm_normal_page_pmd)(vma, address, pmd);
	return page && take(collect, page_folio(page), address, end);
}

/* A huge page, or one that is being moved. */
static bool is_huge(pmd_t pmd)
{
	return !pmd_none(pmd) && (pmd_leaf(pmd) || !pmd_present(pmd));
}

static int collect_pmd(pmd_t *pmd, unsigned long address, unsigned long end, struct mm_walk *walk)
{
	struct memsluice_collect *collect = walk->private;
	bool full = false;
	spinlock_t *lock;
	pte_t *first, *pte;

	if (is_huge(pmdp_get_lockless(pmd))) {
		lock = pmd_lock(walk->mm, pmd);
		if (is_huge(*pmd)) {
			full = take_huge(collect, walk->vma, address, end, *pmd);
			spin_unlock(lock);
			collect->next = end;
			return full;
		}
		spin_unlock(lock);
	}
	first = pte = memsluice_pte_lock(walk->mm, pmd, address, &lock);
	if (!pte) {
		walk->action = ACTION_AGAIN;
		return 0;
	}
	for (; address < end && !full; address += PAGE_SIZE, pte++) {
		pte_t entry = ptep_get(pte);
		struct folio *folio;

		if (!pte_present(entry))
			continue;
		folio = memsluice_call(vm_normal_folio)(walk->vma, address, entry);
		if (folio)
			full = take(collect, folio, address, address + PAGE_SIZE);
	}
	pte_unmap_unlock(first, lock);
	collect->next = address;
	return full;
}

static int refuse_hugetlb(pte_t *pte, unsigned long mask, unsigned long address, unsigned long next,
			  struct mm_walk *walk)
{
	struct memsluice_collect *collect = walk->private;
	unsigned long pages = (next - address) >> PAGE_SHIFT;

	collect->counts->seen += pages;
	refuse(collect, MEMSLUICE_REFUSED_HUGETLB, pages);
	name(collect, address, next, refused_as(MEMSLUICE_REFUSED_HUGETLB));
	collect->next = next;
	return 0;
}

/* Return: 1 to skip a mapping whose pages have no struct page or belong to a device. */
static int collect_vma(unsigned long start, unsigned long end, struct mm_walk *walk)
{
	struct memsluice_collect *collect = walk->private;
	unsigned long pages = (end - start) >> PAGE_SHIFT;

	if (!(walk->vma->vm_flags & (VM_IO | VM_PFNMAP)))
		return 0;
	collect->counts->seen += pages;
	refuse(collect, MEMSLUICE_REFUSED_UNMOVABLE, pages);
	name(collect, start, end, refused_as(MEMSLUICE_REFUSED_UNMOVABLE));
	return 1;
}

static const struct mm_walk_ops collect_ops = {
	.pmd_entry = collect_pmd,
	.hugetlb_entry = refuse_hugetlb,
	.test_walk = collect_vma,
	.walk_lock = PGWALK_RDLOCK,
};

static void walk(struct memsluice_collect *collect, struct mm_struct *mm, unsigned long start,
		 unsigned long end)
{
	mmap_assert_locked(mm);
	collect->last = NULL;
	collect->next = start;
	if (memsluice_call(walk_page_range)(mm, start, end, &collect_ops, collect) <= 0)
		collect->next = end;
}

int memsluice_collect_range(struct memsluice_collect *collect, struct mm_struct *mm,
			    unsigned long start, unsigned long end)
{
	if (mmap_read_lock_killable(mm))
		return -EINTR;
	walk(collect, mm, start, end);
	mmap_read_unlock(mm);
	return 0;
}

/* Pages that follow each other, beginning with the first address. */
static unsigned long run_length(const u64 *addresses, unsigned long count)
{
	unsigned long i = 1;

	while (i < count && addresses[i] && addresses[i] == addresses[i - 1] + PAGE_SIZE)
		i++;
	return i;
}

/* Return: how many of the addresses have been looked at. */
static unsigned long walk_run(struct memsluice_collect *collect, struct mm_struct *mm,
			      unsigned long start, unsigned long length,
			      struct memsluice_named *named)
{
	unsigned long end = start + length * PAGE_SIZE, i;

	collect->named = named;
	collect->named_start = start;
	/* Not by address: behind the last page there is none. */
	for (i = 0; named && i < length; i++)
		named[i] = refused_as(MEMSLUICE_REFUSED_ABSENT);
	walk(collect, mm, start, end);
	collect->named = NULL;
	length = (collect->next - start) >> PAGE_SHIFT;
	for (i = 0; named && i < length; i++) {
		if (named[i].result != -1 - MEMSLUICE_REFUSED_ABSENT)
			continue;
		collect->counts->seen++;
		refuse(collect, MEMSLUICE_REFUSED_ABSENT, 1);
	}
	return length;
}

long memsluice_collect_addresses(struct memsluice_collect *collect, struct mm_struct *mm,
				 const u64 *addresses, unsigned long count,
				 struct memsluice_named *named)
{
	unsigned long at = 0;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	while (at < count && collect->pages < collect->room_pages)
		at += walk_run(collect, mm, addresses[at], run_length(addresses + at, count - at),
			       named ? named + at : NULL);
	mmap_read_unlock(mm);
	return at;
}

static bool is_charged(struct folio *folio, const struct cgroup *cgroup)
{
	struct mem_cgroup *memcg;
	bool charged;

	rcu_read_lock();
	memcg = folio_memcg(folio);
	charged = memcg && cgroup_is_descendant(memcg->css.cgroup, (struct cgroup *)cgroup);
	rcu_read_unlock();
	return charged;
}

/* The folio that starts at a frame, with a reference, if it is one that can be on an LRU list. */
static struct folio *folio_at(unsigned long pfn)
{
	struct page *page = pfn_to_online_page(pfn);
	struct folio *folio;

	if (!page || PageTail(page))
		return NULL;
	folio = page_folio(page);
	if (!folio_test_lru(folio) || !folio_try_get(folio))
		return NULL;
	if (page_folio(page) == folio && folio_pfn(folio) == pfn && folio_test_lru(folio))
		return folio;
	folio_put(folio);
	return NULL;
}

void memsluice_collect_frames(struct memsluice_collect *collect, const struct cgroup *cgroup,
			      unsigned long pfn, unsigned long end)
{
	unsigned long pages;
	struct folio *folio;
	bool full = false;

	collect->last = NULL;
	while (pfn < end && !full) {
		if (!(pfn % PAGES_PER_SECTION))
			cond_resched();
		folio = folio_at(pfn);
		pages = 1;
		if (folio) {
			pages = folio_nr_pages(folio);
			if (is_charged(folio, cgroup))
				full = take(collect, folio, 0, 0);
			folio_put(folio);
		}
		pfn += pages;
	}
	collect->next = min(pfn, end);
}

struct node_at {
	int nid;
	unsigned long pfn;
};

static bool note_node(struct folio *folio, void *private)
{
	struct node_at *at = private;

	at->nid = folio_nid(folio);
	at->pfn = folio_pfn(folio);
	return false;
}

int memsluice_node_at(struct mm_struct *mm, unsigned long address, unsigned long *pfn)
{
	struct node_at at = { .nid = NUMA_NO_NODE };
	struct memsluice_counts unused = {};
	struct memsluice_collect collect = {
		.wanted = note_node,
		.private = &at,
		.folios = LIST_HEAD_INIT(collect.folios),
		.counts = &unused,
	};

	memsluice_collect_range(&collect, mm, address, address + PAGE_SIZE);
	*pfn = at.pfn;
	return at.nid;
}
