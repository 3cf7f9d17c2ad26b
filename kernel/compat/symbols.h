/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COMPAT_SYMBOLS_H
#define MEMSLUICE_COMPAT_SYMBOLS_H

#include <asm/e820/api.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/memory.h>
#include <linux/mempolicy.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/numa.h>
#include <linux/pagewalk.h>
#include <linux/rmap.h>
#include <linux/static_call.h>

#include "include/uapi/memsluice.h"

#define MEMSLUICE_SCAN (MEMSLUICE_FEATURE_HOTNESS_SCAN | MEMSLUICE_FEATURE_TIERING)
#define MEMSLUICE_MOVE                                                                             \
	(MEMSLUICE_FEATURE_MIGRATE | MEMSLUICE_FEATURE_MIGRATE_TENANT |                            \
	 MEMSLUICE_FEATURE_TIERING | MEMSLUICE_FEATURE_REDISTRIBUTE)
#define MEMSLUICE_WALK (MEMSLUICE_SCAN | MEMSLUICE_FEATURE_MIGRATE | MEMSLUICE_FEATURE_REDISTRIBUTE)

#define MEMSLUICE_BATCH MEMSLUICE_FEATURE_MIGRATE_BATCH

#ifdef MEMSLUICE_HAVE_REMOVE_MIGRATION_PTES_TTU
#define MEMSLUICE_REMOVE_FLAGS enum ttu_flags
#else
#define MEMSLUICE_REMOVE_FLAGS int
#endif
#ifdef MEMSLUICE_HAVE_FOLIO_GET_ANON_VMA_CONST
#define MEMSLUICE_ANON_VMA_FOLIO const struct folio
#else
#define MEMSLUICE_ANON_VMA_FOLIO struct folio
#endif
#ifdef MEMSLUICE_HAVE_MIGRATE_PAGES_REASON
#define MEMSLUICE_REASON enum migrate_reason
#else
#define MEMSLUICE_REASON int
#endif
#ifdef MEMSLUICE_HAVE_CLEAR_YOUNG_BOOL
#define MEMSLUICE_YOUNG bool
#else
#define MEMSLUICE_YOUNG int
#endif
#ifdef MEMSLUICE_HAVE_NEXT_DEMOTION_NODE_ALLOWED
#define MEMSLUICE_DEMOTION_PARAMETERS (int node, const nodemask_t *allowed)
#else
#define MEMSLUICE_DEMOTION_PARAMETERS (int node)
#endif
/* The function itself, or what an inline one calls. */
#ifdef MEMSLUICE_HAVE_PTE_OFFSET_MAP_LOCK_INLINE
#define MEMSLUICE_PTE_LOCK(X, ret, ...) X(MEMSLUICE_WALK, ret, __pte_offset_map_lock, __VA_ARGS__)
#define memsluice_call_pte_lock memsluice_call(__pte_offset_map_lock)
#else
#define MEMSLUICE_PTE_LOCK(X, ret, ...) X(MEMSLUICE_WALK, ret, pte_offset_map_lock, __VA_ARGS__)
#define memsluice_call_pte_lock memsluice_call(pte_offset_map_lock)
#endif

/*
 * Every function of the kernel that is called here and not exported:
 *
 *	X(features that need it, return type, name, parameters, what a call returns that must not
 *	  have happened)
 *
 * The declaration is also what the running kernel's BTF is compared with at load.
 */
#define MEMSLUICE_SYMBOLS(X)                                                                       \
	X(MEMSLUICE_MOVE, int, migrate_pages,                                                      \
	  (struct list_head * from, new_folio_t * get_new_folio, free_folio_t * put_new_folio,     \
	   unsigned long private, enum migrate_mode mode, MEMSLUICE_REASON reason,                 \
	   unsigned int *ret_succeeded),                                                           \
	  -ENOSYS)                                                                                 \
	X(MEMSLUICE_MOVE, void, putback_movable_pages, (struct list_head * l), )                   \
	X(MEMSLUICE_MOVE, bool, folio_isolate_lru, (struct folio * folio), false)                  \
	X(MEMSLUICE_MOVE | MEMSLUICE_FEATURE_CENSUS, void, lru_add_drain_all, (void), )            \
	X(MEMSLUICE_BATCH, void, try_to_migrate, (struct folio * folio, enum ttu_flags flags), )   \
	X(MEMSLUICE_BATCH, void, try_to_unmap_flush, (void), )                                     \
	X(MEMSLUICE_BATCH, void, remove_migration_ptes,                                            \
	  (struct folio * src, struct folio * dst, MEMSLUICE_REMOVE_FLAGS flags), )                \
	X(MEMSLUICE_BATCH, struct anon_vma *, folio_get_anon_vma,                                  \
	  (MEMSLUICE_ANON_VMA_FOLIO * folio), NULL)                                                \
	X(MEMSLUICE_BATCH, void, __put_anon_vma, (struct anon_vma * anon_vma), )                   \
	X(MEMSLUICE_BATCH, void, deferred_split_folio,                                             \
	  (struct folio * folio, bool partially_mapped), )                                         \
	X(MEMSLUICE_BATCH, void, lru_add_drain, (void), )                                          \
	X(MEMSLUICE_WALK, int, walk_page_range,                                                    \
	  (struct mm_struct * mm, unsigned long start, unsigned long end,                          \
	   const struct mm_walk_ops *ops, void *private),                                          \
	  -ENOSYS)                                                                                 \
	MEMSLUICE_PTE_LOCK(                                                                        \
		X, pte_t *,                                                                        \
		(struct mm_struct * mm, pmd_t * pmd, unsigned long addr, spinlock_t **ptlp), NULL) \
	X(MEMSLUICE_WALK, struct folio *, vm_normal_folio,                                         \
	  (struct vm_area_struct * vma, unsigned long addr, pte_t pte), NULL)                      \
	X(MEMSLUICE_WALK, struct page *, vm_normal_page_pmd,                                       \
	  (struct vm_area_struct * vma, unsigned long addr, pmd_t pmd), NULL)                      \
	X(MEMSLUICE_FEATURE_MIGRATE, bool, ptrace_may_access,                                      \
	  (struct task_struct * task, unsigned int mode), false)                                   \
	X(MEMSLUICE_FEATURE_MIGRATE, int, security_task_movememory, (struct task_struct * p),      \
	  -EPERM)                                                                                  \
	X(MEMSLUICE_FEATURE_MIGRATE, struct task_struct *, pidfd_get_task,                         \
	  (int pidfd, unsigned int *flags), ERR_PTR(-ENOSYS))                                      \
	X(MEMSLUICE_SCAN, MEMSLUICE_YOUNG, ptep_test_and_clear_young,                              \
	  (struct vm_area_struct * vma, unsigned long addr, pte_t *ptep), 0)                       \
	X(MEMSLUICE_SCAN, MEMSLUICE_YOUNG, pmdp_test_and_clear_young,                              \
	  (struct vm_area_struct * vma, unsigned long addr, pmd_t *pmdp), 0)                       \
	X(MEMSLUICE_SCAN | MEMSLUICE_FEATURE_REDISTRIBUTE, void, flush_tlb_mm_range,               \
	  (struct mm_struct * mm, unsigned long start, unsigned long end,                          \
	   unsigned int stride_shift, bool freed_tables), )                                        \
	X(MEMSLUICE_FEATURE_HOTNESS_SECONDARY, MEMSLUICE_YOUNG, __mmu_notifier_clear_young,        \
	  (struct mm_struct * mm, unsigned long start, unsigned long end), 0)                      \
	X(MEMSLUICE_FEATURE_PLACEMENT, struct mempolicy *, get_vma_policy,                         \
	  (struct vm_area_struct * vma, unsigned long addr, int order, pgoff_t *ilx), NULL)        \
	X(MEMSLUICE_FEATURE_PLACEMENT, struct folio *, folio_alloc_mpol_noprof,                    \
	  (gfp_t gfp, unsigned int order, struct mempolicy *pol, pgoff_t ilx, int nid), NULL)      \
	X(MEMSLUICE_FEATURE_PLACEMENT, struct folio *, shmem_alloc_and_add_folio,                  \
	  (struct vm_fault * vmf, gfp_t gfp, struct inode * inode, pgoff_t index,                  \
	   struct mm_struct * fault_mm, unsigned long orders),                                     \
	  NULL)                                                                                    \
	X(MEMSLUICE_FEATURE_REDISTRIBUTE, void, rmap_walk,                                         \
	  (struct folio * folio, struct rmap_walk_control * rwc), )                                \
	X(MEMSLUICE_FEATURE_REDISTRIBUTE, pmd_t, pmdp_invalidate_ad,                               \
	  (struct vm_area_struct * vma, unsigned long address, pmd_t *pmdp), __pmd(0))             \
	X(MEMSLUICE_FEATURE_REDISTRIBUTE, int, __mmu_notifier_invalidate_range_start,              \
	  (struct mmu_notifier_range * range), 0)                                                  \
	X(MEMSLUICE_FEATURE_REDISTRIBUTE, void, __mmu_notifier_invalidate_range_end,               \
	  (struct mmu_notifier_range * range), )                                                   \
	X(MEMSLUICE_FEATURE_HOTPLUG, void, lock_device_hotplug, (void), )                          \
	X(MEMSLUICE_FEATURE_HOTPLUG, void, unlock_device_hotplug, (void), )                        \
	X(MEMSLUICE_FEATURE_HOTPLUG, int, device_online, (struct device * dev), -ENOSYS)           \
	X(MEMSLUICE_FEATURE_HOTPLUG, int, device_offline, (struct device * dev), -ENOSYS)          \
	X(MEMSLUICE_FEATURE_HOTPLUG, int, walk_memory_blocks,                                      \
	  (unsigned long start, unsigned long size, void *arg, walk_memory_blocks_func_t func),    \
	  -ENOSYS)                                                                                 \
	X(MEMSLUICE_FEATURE_HOTPLUG, bool, e820__mapped_raw_any,                                   \
	  (u64 start, u64 end, enum e820_type type), false)                                        \
	X(0, bool, node_is_toptier, (int node), false)                                             \
	X(0, int, next_demotion_node, MEMSLUICE_DEMOTION_PARAMETERS, NUMA_NO_NODE)

#define MEMSLUICE_DECLARE(features, ret, name, args, fail)                                         \
	ret memsluice_stub_##name args;                                                            \
	DECLARE_STATIC_CALL(memsluice_##name, memsluice_stub_##name);
MEMSLUICE_SYMBOLS(MEMSLUICE_DECLARE)
#undef MEMSLUICE_DECLARE

/*
 * Calls a function of the table. A static call is patched into a direct call, which IBT allows
 * where an indirect one to a sealed function would trap.
 */
#define memsluice_call(name) static_call(memsluice_##name)

/* pte_offset_map_lock(): NULL when @pmd maps no table of PTEs any more. */
static inline pte_t *memsluice_pte_lock(struct mm_struct *mm, pmd_t *pmd, unsigned long address,
					spinlock_t **lock)
{
	pte_t *pte = memsluice_call_pte_lock(mm, pmd, address, lock);

	if (pte) {
		/* For sparse: what the call has taken, and pte_unmap_unlock() gives back. */
		__acquire(RCU);
		__acquire(*lock);
	}
	return pte;
}

enum memsluice_symbol_state {
	MEMSLUICE_SYMBOL_MISSING,
	MEMSLUICE_SYMBOL_MISMATCH, /* found, with another signature than the one compiled for */
	MEMSLUICE_SYMBOL_UNCHECKED, /* found; the kernel has no BTF to compare with */
	MEMSLUICE_SYMBOL_BOUND,
};

struct memsluice_symbol {
	const char *name;
	const char *declared; /* "int(struct list_head *from, ...)" */
	u64 features;
	void (*bind)(void *address);
	void *address;
	enum memsluice_symbol_state state;
};

const struct memsluice_symbol *memsluice_symbol_table(unsigned int *count);
const char *memsluice_symbol_state_name(enum memsluice_symbol_state state);

/**
 * memsluice_symbols_bind() - find, compare and bind every function of the table
 * @allow_unchecked: bind functions even though the kernel carries no BTF
 *
 * What is missing or different is logged by name and stays bound to a stub that fails.
 *
 * Context: process, at module load only.
 * Return: 0; -ENOENT when names cannot be resolved at all; -ENOEXEC when there is no BTF and
 * @allow_unchecked is false.
 */
int memsluice_symbols_bind(bool allow_unchecked);

/* Features all of whose functions are bound. */
u64 memsluice_symbols_features(u64 wanted);

/* The address of a variable that is not exported; 0: this kernel does not have it. */
unsigned long memsluice_data_address(const char *name);

/* The address of a function of the table, for ftrace; NULL: it is not bound. */
void *memsluice_symbol_address(const char *name);

/* True when one function is bound. */
bool memsluice_symbol_bound(const char *name);

#endif
