/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_HOTNESS_REGIONS_H
#define MEMSLUICE_HOTNESS_REGIONS_H

#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/xarray.h>

#include "kernel/tenant/tenant.h"

/*
 * What is known of the pages of one process, by virtual address: a region a PMD, so that a huge
 * page has one count and a table of base pages has 512.
 */

#define MEMSLUICE_REGION_SHIFT PMD_SHIFT
#define MEMSLUICE_REGION_PAGES PTRS_PER_PTE

#define MEMSLUICE_PAGE_PRESENT BIT(0) /* mapped at the last scan, and the tenant's own */
#define MEMSLUICE_PAGE_FAST BIT(1) /* on a fast node */
#define MEMSLUICE_PAGE_TRIED BIT(2) /* chosen for a move since */
#define MEMSLUICE_PAGE_BEFORE BIT(3) /* only during a scan: mapped at the one before, too */

struct memsluice_region {
	u32 clock; /* coolings that the counts have had */
	u32 scan; /* serial number of the last scan that met it */
	bool huge; /* one page: entry 0 stands for all */
	u8 state[MEMSLUICE_REGION_PAGES];
	u16 count[MEMSLUICE_REGION_PAGES];
};

/* An address space of a tenant. */
struct memsluice_space {
	struct list_head link;
	refcount_t references;
	u64 serial;
	struct mm_struct *mm; /* mmgrab()ed: the structure, not what it maps */
	struct memsluice_tenant *tenant;
	u32 scan; /* the last scan that found a process with it */
	struct mutex lock; /* the regions */
	struct xarray regions; /* by address >> MEMSLUICE_REGION_SHIFT */
};

/**
 * memsluice_space_find() - the space of an mm, made if there is none
 * @mm: held by the caller
 * @tenant: whose it is now; processes may change their cgroup
 *
 * Return: a reference, or NULL when there is no memory.
 */
struct memsluice_space *memsluice_space_find(struct mm_struct *mm, struct memsluice_tenant *tenant);
void memsluice_space_put(struct memsluice_space *space);

/* The space of a tenant with the lowest serial number above @serial; a reference, or NULL. */
struct memsluice_space *memsluice_space_next(const struct memsluice_tenant *tenant, u64 serial);

/* Forgets all spaces that @scan has not found; all of them if @scan is 0. */
void memsluice_spaces_forget(u32 scan);

/* The region that an address is in, made if there is none; NULL when there is no memory. */
struct memsluice_region *memsluice_region_at(struct memsluice_space *space, unsigned long address);

/* Brings the counts of a region up to the present cooling clock. */
void memsluice_region_cool(struct memsluice_region *region, u32 clock);

/* Forgets regions that @scan has not met. */
void memsluice_regions_forget(struct memsluice_space *space, u32 scan);

#endif
