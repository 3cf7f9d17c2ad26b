// SPDX-License-Identifier: GPL-2.0
#include "kernel/compat/memory_tiers.h"

#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched/task.h>
#include <linux/topology.h>

#include "kernel/compat/symbols.h"

#ifdef MEMSLUICE_HAVE_NEXT_DEMOTION_NODE_ALLOWED
#define demotion_order(nid, allowed) memsluice_call(next_demotion_node)(nid, allowed)
#else
#define demotion_order(nid, allowed) memsluice_call(next_demotion_node)(nid)
#endif

bool memsluice_node_is_fast(int nid)
{
	if (memsluice_symbol_bound("node_is_toptier"))
		return memsluice_call(node_is_toptier)(nid);
	return node_state(nid, N_CPU);
}

bool memsluice_has_tiers(void)
{
	bool fast = false, slow = false;
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		if (memsluice_node_is_fast(nid))
			fast = true;
		else
			slow = true;
	}
	return fast && slow;
}

static int nearest(int from, bool fast, const nodemask_t *allowed)
{
	int nid, best = NUMA_NO_NODE;

	for_each_node_state(nid, N_MEMORY) {
		if (nid == from || memsluice_node_is_fast(nid) != fast ||
		    !node_isset(nid, *allowed))
			continue;
		if (best == NUMA_NO_NODE || node_distance(from, nid) < node_distance(from, best))
			best = nid;
	}
	return best;
}

int memsluice_demotion_target(int nid, const nodemask_t *allowed)
{
	int target = NUMA_NO_NODE;

	if (memsluice_symbol_bound("next_demotion_node"))
		target = demotion_order(nid, allowed);
	/* Where no node of the order is allowed, some kernels name the nearest of all that are. */
	if (target != NUMA_NO_NODE && node_isset(target, *allowed) &&
	    !memsluice_node_is_fast(target))
		return target;
	return nearest(nid, false, allowed);
}

int memsluice_promotion_target(int nid, const nodemask_t *allowed)
{
	return nearest(nid, true, allowed);
}

void memsluice_allowed_nodes(struct task_struct *task, nodemask_t *nodes)
{
	/* Changes of a cpuset are made to its tasks one by one, under this lock. */
	task_lock(task);
	*nodes = task->mems_allowed;
	task_unlock(task);
}

/*
 * What pages of processes can still have of a zone. The rest of what is free there is kept for
 * kernel memory that fits nowhere else, or would wake reclaim.
 */
static unsigned long usable_pages(struct zone *zone)
{
	unsigned long free = zone_page_state(zone, NR_FREE_PAGES);
	unsigned long kept = low_wmark_pages(zone) + zone->lowmem_reserve[ZONE_MOVABLE];

	return free > kept ? free - kept : 0;
}

struct memsluice_node_memory memsluice_node_memory(int nid)
{
	struct memsluice_node_memory memory = { 0 };
	struct zone *zone;
	int i;

	if (!node_online(nid))
		return memory;
	for (i = 0; i < MAX_NR_ZONES; i++) {
		zone = &NODE_DATA(nid)->node_zones[i];
		if (!managed_zone(zone))
			continue;
		memory.managed_pages += zone_managed_pages(zone);
		memory.free_pages += usable_pages(zone);
	}
	return memory;
}
