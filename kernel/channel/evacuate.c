// SPDX-License-Identifier: GPL-2.0
#include "kernel/channel/evacuate.h"

#include <linux/cgroup.h>
#include <linux/nodemask.h>
#include <linux/sched/signal.h>
#include <linux/topology.h>

#include "kernel/channel/redistribute.h"
#include "kernel/compat/memory_tiers.h"
#include "kernel/compat/symbols.h"
#include "kernel/tenant/tenant.h"

/* Return: whether something found no room. */
static bool run(struct memsluice_request_spec *spec, u64 *moved_pages)
{
	struct memsluice_request *request;
	bool full;

	spec->cgroup = cgroup_get_from_id(spec->cgroup_id);
	if (IS_ERR(spec->cgroup))
		return false;
	request = memsluice_request_new(spec);
	if (IS_ERR(request))
		return false;
	memsluice_request_run(request);
	WRITE_ONCE(*moved_pages, *moved_pages + request->counts.moved);
	full = request->counts.refused[MEMSLUICE_REFUSED_NO_MEMORY];
	memsluice_request_put(request);
	return full;
}

/* To where the placement of each tenant has its pages. */
static void move_placed(int nid, u64 *moved_pages)
{
	struct memsluice_tenant *tenant;
	u64 id = 0;

	while (!signal_pending(current) && (tenant = memsluice_tenant_next(id))) {
		struct memsluice_request_spec spec = {
			.kind = MEMSLUICE_MIGRATE_TENANT_PLACED,
			.all_mappings = true,
			.source_node = nid,
			.target_node = NUMA_NO_NODE,
			.cgroup_id = tenant->cgroup_id,
		};

		id = tenant->cgroup_id;
		memsluice_tenant_put(tenant);
		if (!memsluice_redistribute(&spec, false))
			run(&spec, moved_pages);
	}
}

/* The nearest of @nodes that has room, which is taken out of them; NUMA_NO_NODE: none has. */
static int take_nearest(int from, nodemask_t *nodes)
{
	int nid, best = NUMA_NO_NODE;

	for_each_node_mask(nid, *nodes)
	{
		if (memsluice_node_memory(nid).free_pages &&
		    (best == NUMA_NO_NODE || node_distance(from, nid) < node_distance(from, best)))
			best = nid;
	}
	if (best != NUMA_NO_NODE)
		node_clear(best, *nodes);
	return best;
}

void memsluice_evacuate(int nid, u64 *moved_pages)
{
	nodemask_t others = node_states[N_MEMORY];
	struct memsluice_request_spec rest = {
		.kind = MEMSLUICE_MIGRATE_TENANT_NODE,
		.all_mappings = true,
		.source_node = nid,
		.cgroup_id = cgroup_id(&cgrp_dfl_root.cgrp),
	};

	if (memsluice_symbols_features(MEMSLUICE_FEATURE_REDISTRIBUTE))
		move_placed(nid, moved_pages);
	node_clear(nid, others);
	do {
		rest.target_node = take_nearest(nid, &others);
	} while (!signal_pending(current) && rest.target_node != NUMA_NO_NODE &&
		 run(&rest, moved_pages));
}

unsigned long memsluice_room_elsewhere(int nid)
{
	unsigned long pages = 0;
	int other;

	for_each_node_state(other, N_MEMORY) {
		if (other != nid)
			pages += memsluice_node_memory(other).free_pages;
	}
	return pages;
}
