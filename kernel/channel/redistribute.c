// SPDX-License-Identifier: GPL-2.0
#include "kernel/channel/redistribute.h"

#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>

#include "kernel/channel/placement.h"
#include "kernel/channel/touch.h"
#include "kernel/compat/memory_tiers.h"
#include "kernel/compat/symbols.h"
#include "kernel/tenant/tenant.h"

/* Processes' own memory and shared memory of a tenant, and not of one below it. */
static bool is_of(struct folio *folio, void *private)
{
	const u64 *cgroup_id = private;

	return folio_test_swapbacked(folio) && memsluice_tenant_id_of(folio) == *cgroup_id;
}

/* Whether the processes that map a folio let it go to a node. */
struct question {
	int target;
	int refusal; /* 0, or -1 - reason */
};

static bool ask_mapping(struct folio *folio, struct vm_area_struct *vma, unsigned long address,
			void *private)
{
	struct question *question = private;

	question->refusal = memsluice_placement_may_move(vma, question->target);
	return !question->refusal;
}

/* Return: 0, or -1 - reason. */
static int ask_mappings(struct folio *folio, int target)
{
	struct question question = { .target = target };
	struct rmap_walk_control walk = { .rmap_one = ask_mapping, .arg = &question };

	lockdep_assert(folio_test_locked(folio));
	if (folio_mapped(folio))
		memsluice_call(rmap_walk)(folio, &walk);
	return question.refusal;
}

static int place(struct folio *folio, u64 cgroup_id, u64 index)
{
	const struct memsluice_tenant *tenant;
	const struct memsluice_placed *placed;
	int nid = folio_nid(folio);

	rcu_read_lock();
	tenant = memsluice_tenant_peek_id(cgroup_id);
	placed = tenant ? rcu_dereference(tenant->placed) : NULL;
	if (placed)
		nid = memsluice_placement_target(placed, index, folio_order(folio), nid);
	rcu_read_unlock();
	return nid;
}

/* The folio's lock keeps its file, and the lists of its mappings. */
static int target_of(struct folio *folio, void *private)
{
	const u64 *cgroup_id = private;
	int target, err;
	u64 index;

	if (!folio_trylock(folio))
		return -1 - MEMSLUICE_REFUSED_BUSY;
	target = memsluice_placement_index(folio, &index);
	if (!target)
		target = place(folio, *cgroup_id, index);
	if (target >= 0 && target != folio_nid(folio)) {
		err = ask_mappings(folio, target);
		target = err ?: target;
	}
	folio_unlock(folio);
	return target;
}

int memsluice_redistribute(struct memsluice_request_spec *spec, bool on_touch)
{
	struct memsluice_tenant *tenant = memsluice_tenant_get(spec->cgroup_id);
	bool placed;

	if (!tenant)
		return -ENOENT;
	placed = rcu_access_pointer(tenant->placed);
	memsluice_tenant_put(tenant);
	if (!placed)
		return -ENODATA;
	spec->is_of = is_of;
	spec->target_of = target_of;
	spec->do_instead = on_touch ? memsluice_touch_mark : NULL;
	return 0;
}
