// SPDX-License-Identifier: GPL-2.0
#include "kernel/channel/touch.h"

#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmap_lock.h>
#include <linux/mmu_notifier.h>
#include <linux/pagewalk.h>
#include <linux/sched/mm.h>

#include "kernel/channel/placement.h"
#include "kernel/compat/no_access.h"
#include "kernel/compat/shared.h"
#include "kernel/compat/symbols.h"
#include "kernel/hotness/regions.h"

/* Walked under one hold of the mmap lock, and then flushed from the TLBs at once. */
#define SLICE_BYTES (32UL << PMD_SHIFT)

struct walk {
	u64 cgroup_id;
	bool only_looks;
	unsigned long pages; /* that are marked, or would be */
	struct memsluice_counts counts;
};

/* Return: the page's node, another to which it shall go, or -1 - reason. */
static int look_at(const struct walk *walk, struct vm_area_struct *vma, struct folio *folio)
{
	const struct memsluice_tenant *tenant;
	const struct memsluice_placed *placed;
	int nid = folio_nid(folio), target;
	u64 index;

	target = memsluice_placement_index(folio, &index);
	if (target)
		return target;
	rcu_read_lock();
	tenant = memsluice_tenant_peek_id(walk->cgroup_id);
	placed = tenant ? rcu_dereference(tenant->placed) : NULL;
	target = placed ? memsluice_placement_target(placed, index, folio_order(folio), nid) : nid;
	rcu_read_unlock();
	if (target < 0 || target == nid)
		return target;
	if (memsluice_is_shared(folio))
		return -1 - MEMSLUICE_REFUSED_SHARED;
	if (folio_maybe_dma_pinned(folio))
		return -1 - MEMSLUICE_REFUSED_PINNED;
	return memsluice_placement_may_move(vma, target) ?: target;
}

/* Whether an entry is to be marked, if it is not yet. Its page table is locked. */
static bool shall_mark(struct walk *walk, struct vm_area_struct *vma, struct folio *folio,
		       unsigned long pages)
{
	int target;

	if (folio_is_zone_device(folio) || !folio_test_swapbacked(folio) ||
	    memsluice_tenant_id_of(folio) != walk->cgroup_id)
		return false;
	target = look_at(walk, vma, folio);
	walk->counts.seen += pages;
	if (target == folio_nid(folio)) {
		walk->counts.already_there += pages;
		return false;
	}
	if (target < 0) {
		walk->counts.refused[-1 - target] += pages;
		return false;
	}
	walk->counts.moved += pages;
	walk->pages += pages;
	return !walk->only_looks;
}

static void mark_huge(struct walk *walk, struct vm_area_struct *vma, unsigned long address,
		      pmd_t *pmd)
{
	struct page *page;
	pmd_t entry;

	if (!pmd_present(*pmd))
		return;
	page = memsluice_call(vm_normal_page_pmd)(vma, address, *pmd);
	if (!page || !shall_mark(walk, vma, page_folio(page), HPAGE_PMD_NR) || pmd_protnone(*pmd))
		return;
	/* At no time absent, and no accessed or dirty bit is lost. */
	entry = memsluice_call(pmdp_invalidate_ad)(vma, address, pmd);
	set_pmd_at(vma->vm_mm, address, pmd, memsluice_pmd_no_access(entry));
}

static void mark_base(struct walk *walk, struct vm_area_struct *vma, unsigned long address,
		      pte_t *pte)
{
	pte_t entry = ptep_get(pte);
	struct folio *folio;

	if (!pte_present(entry))
		return;
	folio = memsluice_call(vm_normal_folio)(vma, address, entry);
	if (!folio || !shall_mark(walk, vma, folio, 1) || pte_protnone(entry))
		return;
	entry = ptep_modify_prot_start(vma, address, pte);
	ptep_modify_prot_commit(vma, address, pte, entry, memsluice_pte_no_access(entry));
}

static int mark_pmd(pmd_t *pmd, unsigned long address, unsigned long end, struct mm_walk *mm_walk)
{
	struct walk *walk = mm_walk->private;
	spinlock_t *lock;
	pte_t *first, *pte;

	if (pmd_leaf(pmdp_get_lockless(pmd))) {
		lock = pmd_lock(mm_walk->mm, pmd);
		if (pmd_leaf(*pmd) || !pmd_present(*pmd)) {
			mark_huge(walk, mm_walk->vma, address & PMD_MASK, pmd);
			spin_unlock(lock);
			return 0;
		}
		spin_unlock(lock);
	}
	first = pte = memsluice_pte_lock(mm_walk->mm, pmd, address, &lock);
	if (!pte)
		return 0; /* it has just become another thing */
	for (; address < end; address += PAGE_SIZE, pte++)
		mark_base(walk, mm_walk->vma, address, pte);
	pte_unmap_unlock(first, lock);
	return 0;
}

/* Return: 1 to skip what the kernel would not take for marked, or not move. */
static int mark_vma(unsigned long start, unsigned long end, struct mm_walk *mm_walk)
{
	struct vm_area_struct *vma = mm_walk->vma;

	return !vma_is_accessible(vma) || is_vm_hugetlb_page(vma) ||
	       (vma->vm_flags & (VM_IO | VM_PFNMAP | VM_MIXEDMAP));
}

static const struct mm_walk_ops mark_ops = {
	.pmd_entry = mark_pmd,
	.test_walk = mark_vma,
	.walk_lock = PGWALK_RDLOCK,
};

static void walk_range(struct walk *walk, struct mm_struct *mm, unsigned long start,
		       unsigned long end)
{
	walk->pages = 0;
	memsluice_call(walk_page_range)(mm, start, end, &mark_ops, walk);
}

/* Secondary page tables lose all of a range, whether anything is marked or not: look first. */
static bool would_mark(const struct walk *walk, struct mm_struct *mm, unsigned long start,
		       unsigned long end)
{
	struct walk look = { .cgroup_id = walk->cgroup_id, .only_looks = true };

	walk_range(&look, mm, start, end);
	return look.pages;
}

static void mark_range(struct walk *walk, struct mm_struct *mm, unsigned long start,
		       unsigned long end)
{
	struct mmu_notifier_range range;
	bool notify = mm_has_notifiers(mm) && would_mark(walk, mm, start, end);

	walk->only_looks = mm_has_notifiers(mm) && !notify;
	if (notify) {
		mmu_notifier_range_init(&range, MMU_NOTIFY_PROTECTION_VMA, 0, mm, start, end);
		range.flags |= MMU_NOTIFIER_RANGE_BLOCKABLE;
		memsluice_call(__mmu_notifier_invalidate_range_start)(&range);
	}
	/* Who unmaps a page meanwhile must not take it for flushed. */
	inc_tlb_flush_pending(mm);
	walk_range(walk, mm, start, end);
	if (walk->pages && !walk->only_looks)
		memsluice_call(flush_tlb_mm_range)(mm, start, end, PAGE_SHIFT, false);
	dec_tlb_flush_pending(mm);
	if (notify)
		memsluice_call(__mmu_notifier_invalidate_range_end)(&range);
}

/* Return: where the next slice starts, 0 at the end of the address space. */
static unsigned long mark_slice(struct walk *walk, struct mm_struct *mm, unsigned long start)
{
	struct vm_area_struct *vma;
	unsigned long end = 0;

	if (!mmget_not_zero(mm))
		return 0;
	mmap_read_lock(mm);
	vma = find_vma(mm, start);
	if (vma) {
		start = max(start, vma->vm_start);
		end = min(ALIGN_DOWN(start, PMD_SIZE) + SLICE_BYTES, mm->task_size);
		mark_range(walk, mm, start, end);
	}
	mmap_read_unlock(mm);
	mmput(mm);
	return end < mm->task_size ? end : 0;
}

static int mark_space(struct walk *walk, struct mm_struct *mm, struct memsluice_request *request)
{
	unsigned long at = 0;

	do {
		at = mark_slice(walk, mm, at);
		if (!memsluice_request_goes_on(request, &walk->counts))
			return -EINTR;
	} while (at);
	return 0;
}

int memsluice_touch_mark(u64 cgroup_id, struct memsluice_request *request)
{
	struct memsluice_tenant *tenant = memsluice_tenant_get(cgroup_id);
	struct walk walk = { .cgroup_id = cgroup_id };
	struct memsluice_space *space;
	u64 serial = 0;
	int err = 0;

	if (!tenant)
		return -ENOENT;
	while (!err && (space = memsluice_space_next(tenant, serial))) {
		serial = space->serial;
		err = mark_space(&walk, space->mm, request);
		memsluice_space_put(space);
	}
	memsluice_tenant_put(tenant);
	return err;
}
