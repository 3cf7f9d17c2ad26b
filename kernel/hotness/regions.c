// SPDX-License-Identifier: GPL-2.0
#include "kernel/hotness/regions.h"

#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

static LIST_HEAD(spaces); /* in the order of their serial numbers */
static DEFINE_MUTEX(spaces_lock);
static u64 last_serial;

static struct memsluice_space *new_space(struct mm_struct *mm, struct memsluice_tenant *tenant)
{
	struct memsluice_space *space = kzalloc(sizeof(*space), GFP_KERNEL);

	if (!space)
		return NULL;
	refcount_set(&space->references, 1);
	space->serial = ++last_serial;
	mmgrab(mm);
	space->mm = mm;
	refcount_inc(&tenant->references);
	space->tenant = tenant;
	mutex_init(&space->lock);
	xa_init(&space->regions);
	list_add_tail(&space->link, &spaces);
	return space;
}

static void unlink_space(struct memsluice_space *space)
{
	lockdep_assert_held(&spaces_lock);
	list_del(&space->link);
	memsluice_space_put(space);
}

struct memsluice_space *memsluice_space_find(struct mm_struct *mm, struct memsluice_tenant *tenant)
{
	struct memsluice_space *space, *found = NULL;

	mutex_lock(&spaces_lock);
	list_for_each_entry(space, &spaces, link) {
		if (space->mm == mm) {
			found = space;
			break;
		}
	}
	/* Counts of another tenant tell nothing about what belongs to this one. */
	if (found && found->tenant != tenant) {
		unlink_space(found);
		found = NULL;
	}
	if (!found)
		found = new_space(mm, tenant);
	if (found)
		refcount_inc(&found->references);
	mutex_unlock(&spaces_lock);
	return found;
}

void memsluice_space_put(struct memsluice_space *space)
{
	struct memsluice_region *region;
	unsigned long index;

	if (!refcount_dec_and_test(&space->references))
		return;
	xa_for_each(&space->regions, index, region)
		kfree(region);
	xa_destroy(&space->regions);
	mmdrop(space->mm);
	memsluice_tenant_put(space->tenant);
	kfree(space);
}

struct memsluice_space *memsluice_space_next(const struct memsluice_tenant *tenant, u64 serial)
{
	struct memsluice_space *space, *found = NULL;

	mutex_lock(&spaces_lock);
	list_for_each_entry(space, &spaces, link) {
		if (space->tenant == tenant && space->serial > serial) {
			found = space;
			refcount_inc(&space->references);
			break;
		}
	}
	mutex_unlock(&spaces_lock);
	return found;
}

void memsluice_spaces_forget(u32 scan)
{
	struct memsluice_space *space, *next;

	mutex_lock(&spaces_lock);
	list_for_each_entry_safe(space, next, &spaces, link) {
		if (!scan || space->scan != scan)
			unlink_space(space);
	}
	mutex_unlock(&spaces_lock);
}

struct memsluice_region *memsluice_region_at(struct memsluice_space *space, unsigned long address)
{
	unsigned long index = address >> MEMSLUICE_REGION_SHIFT;
	struct memsluice_region *region;

	lockdep_assert_held(&space->lock);
	region = xa_load(&space->regions, index);
	if (region)
		return region;
	region = kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region)
		return NULL;
	if (xa_err(xa_store(&space->regions, index, region, GFP_KERNEL))) {
		kfree(region);
		return NULL;
	}
	return region;
}

void memsluice_region_cool(struct memsluice_region *region, u32 clock)
{
	u32 ticks = clock - region->clock;
	int i;

	region->clock = clock;
	if (!ticks)
		return;
	for (i = 0; i < (region->huge ? 1 : MEMSLUICE_REGION_PAGES); i++)
		region->count[i] = memsluice_count_cool(region->count[i], ticks);
}

void memsluice_regions_forget(struct memsluice_space *space, u32 scan)
{
	struct memsluice_region *region;
	unsigned long index;

	lockdep_assert_held(&space->lock);
	xa_for_each(&space->regions, index, region) {
		if (region->scan == scan)
			continue;
		xa_erase(&space->regions, index);
		kfree(region);
	}
}
