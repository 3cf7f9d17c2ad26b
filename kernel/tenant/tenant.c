// SPDX-License-Identifier: GPL-2.0
#include "kernel/tenant/tenant.h"

#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

/* By cgroup id. Readers hold RCU and take a reference. */
static DEFINE_XARRAY(tenants);
static DEFINE_MUTEX(tenants_change);
/* Another number each time that another tenant may be the nearest one of some cgroup. */
static unsigned int generation;
static struct tracepoint *rmdir_event;
static void (*on_placed_ended)(void);

static void tenants_have_changed(void)
{
	lockdep_assert_held(&tenants_change);
	smp_store_release(&generation, generation + 1);
}

/* Of a tenant that is no more in the table. */
static void end(struct memsluice_tenant *tenant)
{
	bool placed = rcu_access_pointer(tenant->placed);

	tenants_have_changed();
	memsluice_tenant_put(tenant);
	if (placed)
		on_placed_ended();
}

static void reap(struct work_struct *work)
{
	struct memsluice_tenant *tenant;
	unsigned long id;

	mutex_lock(&tenants_change);
	xa_for_each(&tenants, id, tenant) {
		if (!READ_ONCE(tenant->gone))
			continue;
		xa_erase(&tenants, id);
		end(tenant);
	}
	mutex_unlock(&tenants_change);
}

static DECLARE_WORK(reap_work, reap);

/* The tracepoint cgroup_rmdir: after the cgroup went offline, with a spinlock held. */
static void on_rmdir(void *unused, struct cgroup *cgroup, const char *path)
{
	struct memsluice_tenant *tenant;

	rcu_read_lock();
	tenant = xa_load(&tenants, cgroup_id(cgroup));
	if (tenant) {
		WRITE_ONCE(tenant->gone, true);
		schedule_work(&reap_work);
	}
	rcu_read_unlock();
}

static void match_rmdir(struct tracepoint *event, void *unused)
{
	if (!strcmp(event->name, "cgroup_rmdir"))
		rmdir_event = event;
}

int memsluice_tenants_start(bool *events, void (*placed_ended)(void))
{
	int err;

	on_placed_ended = placed_ended;
	for_each_kernel_tracepoint(match_rmdir, NULL);
	*events = rmdir_event;
	if (!rmdir_event)
		return 0;
	err = tracepoint_probe_register(rmdir_event, on_rmdir, NULL);
	if (err)
		rmdir_event = NULL;
	return err;
}

void memsluice_tenants_stop(void)
{
	struct memsluice_tenant *tenant;
	unsigned long id;

	if (rmdir_event) {
		tracepoint_probe_unregister(rmdir_event, on_rmdir, NULL);
		tracepoint_synchronize_unregister();
	}
	cancel_work_sync(&reap_work);
	xa_for_each(&tenants, id, tenant) {
		xa_erase(&tenants, id);
		memsluice_tenant_put(tenant);
	}
	xa_destroy(&tenants);
	rcu_barrier();
}

static bool charges_memory(struct cgroup *cgroup)
{
	bool has;

	rcu_read_lock();
	has = rcu_dereference(cgroup->subsys[memory_cgrp_id]);
	rcu_read_unlock();
	return has;
}

static bool is_online(const struct cgroup *cgroup)
{
	return cgroup->self.flags & CSS_ONLINE;
}

static struct memsluice_tenant *new_tenant(u64 id, const struct memsluice_policy *policy)
{
	struct memsluice_tenant *tenant = kzalloc(sizeof(*tenant), GFP_KERNEL);

	if (!tenant)
		return NULL;
	tenant->cgroup_id = id;
	refcount_set(&tenant->references, 1);
	spin_lock_init(&tenant->lock);
	tenant->policy = *policy;
	tenant->hot_bin = MEMSLUICE_BINS;
	tenant->cold_bin = MEMSLUICE_BINS;
	return tenant;
}

static int insert(u64 id, const struct memsluice_policy *policy)
{
	struct memsluice_tenant *tenant;
	int err;

	lockdep_assert_held(&tenants_change);
	tenant = new_tenant(id, policy);
	if (!tenant)
		return -ENOMEM;
	err = xa_err(xa_store(&tenants, id, tenant, GFP_KERNEL));
	if (err)
		kfree(tenant);
	else
		tenants_have_changed();
	return err;
}

static int erase(u64 id)
{
	struct memsluice_tenant *tenant;

	lockdep_assert_held(&tenants_change);
	tenant = xa_erase(&tenants, id);
	if (!tenant)
		return -ENOENT;
	end(tenant);
	return 0;
}

int memsluice_tenant_set(struct cgroup *cgroup, const struct memsluice_policy *policy)
{
	struct memsluice_tenant *tenant;
	u64 id = cgroup_id(cgroup);
	int err = 0;

	if (!charges_memory(cgroup))
		return -EOPNOTSUPP;
	mutex_lock(&tenants_change);
	tenant = xa_load(&tenants, id);
	if (tenant) {
		spin_lock(&tenant->lock);
		tenant->policy = *policy;
		spin_unlock(&tenant->lock);
	} else {
		err = insert(id, policy);
	}
	/*
	 * A cgroup goes offline before the event that removes its tenant. Seen online after the
	 * tenant stood in the table, the event is still to come and will find it.
	 */
	if (!err && !is_online(cgroup)) {
		erase(id);
		err = -ENOENT;
	}
	mutex_unlock(&tenants_change);
	return err;
}

int memsluice_tenant_clear(u64 cgroup_id)
{
	int err;

	mutex_lock(&tenants_change);
	err = erase(cgroup_id);
	mutex_unlock(&tenants_change);
	return err;
}

struct memsluice_tenant *memsluice_tenant_get(u64 cgroup_id)
{
	struct memsluice_tenant *tenant;

	rcu_read_lock();
	tenant = memsluice_tenant_peek_id(cgroup_id);
	if (tenant && !refcount_inc_not_zero(&tenant->references))
		tenant = NULL;
	rcu_read_unlock();
	return tenant;
}

struct memsluice_tenant *memsluice_tenant_next(u64 cgroup_id)
{
	struct memsluice_tenant *tenant;
	unsigned long id = cgroup_id;

	rcu_read_lock();
	do {
		tenant = xa_find_after(&tenants, &id, ULONG_MAX, XA_PRESENT);
	} while (tenant && (tenant->gone || !refcount_inc_not_zero(&tenant->references)));
	rcu_read_unlock();
	return tenant;
}

void memsluice_tenant_put(struct memsluice_tenant *tenant)
{
	struct memsluice_placed *placed;

	if (!refcount_dec_and_test(&tenant->references))
		return;
	placed = rcu_dereference_protected(tenant->placed, true);
	if (placed)
		kfree_rcu(placed, rcu);
	kfree_rcu(tenant, rcu);
}

struct memsluice_placed *memsluice_tenant_place(struct memsluice_tenant *tenant,
						struct memsluice_placed *placed)
{
	spin_lock(&tenant->lock);
	placed = rcu_replace_pointer(tenant->placed, placed, lockdep_is_held(&tenant->lock));
	spin_unlock(&tenant->lock);
	return placed;
}

struct memsluice_tenant *memsluice_tenant_peek_id(u64 cgroup_id)
{
	struct memsluice_tenant *tenant = xa_load(&tenants, cgroup_id);

	return tenant && !tenant->gone ? tenant : NULL;
}

/* What was found last on a CPU: the faults of one process ask for one cgroup, thousands of times. */
struct found {
	u64 cgroup_id;
	unsigned int generation;
	struct memsluice_tenant *tenant; /* looked at only while that is the generation */
};

static DEFINE_PER_CPU(struct found, last_found);

struct memsluice_tenant *memsluice_tenant_peek(struct cgroup *cgroup)
{
	/* Before the search: what it finds may be out of date by the time it is noted. */
	struct found found = {
		.generation = smp_load_acquire(&generation),
		.cgroup_id = cgroup ? cgroup_id(cgroup) : 0,
	};
	struct found last = *get_cpu_ptr(&last_found);

	put_cpu_ptr(&last_found);
	if (last.cgroup_id == found.cgroup_id && last.generation == found.generation &&
	    (!last.tenant || !last.tenant->gone))
		return last.tenant;
	for (; cgroup && !found.tenant; cgroup = cgroup_parent(cgroup))
		found.tenant = memsluice_tenant_peek_id(cgroup_id(cgroup));
	*get_cpu_ptr(&last_found) = found;
	put_cpu_ptr(&last_found);
	return found.tenant;
}

struct memsluice_tenant *memsluice_tenant_of(struct cgroup *cgroup)
{
	struct memsluice_tenant *tenant = NULL;

	if (xa_empty(&tenants))
		return NULL;
	for (; cgroup && !tenant; cgroup = cgroup_parent(cgroup))
		tenant = memsluice_tenant_get(cgroup_id(cgroup));
	return tenant;
}

u64 memsluice_tenant_id_of(struct folio *folio)
{
	const struct memsluice_tenant *tenant = NULL;
	struct mem_cgroup *memcg;
	u64 id;

	rcu_read_lock();
	memcg = folio_memcg(folio);
	if (memcg)
		tenant = memsluice_tenant_peek(memcg->css.cgroup);
	id = tenant ? tenant->cgroup_id : 0;
	rcu_read_unlock();
	return id;
}
EXPORT_SYMBOL_GPL(memsluice_tenant_id_of);

struct memsluice_policy memsluice_tenant_policy(struct memsluice_tenant *tenant)
{
	struct memsluice_policy policy;

	spin_lock(&tenant->lock);
	policy = tenant->policy;
	spin_unlock(&tenant->lock);
	return policy;
}

void memsluice_tenants_sweep(void)
{
	struct memsluice_tenant *tenant;
	struct cgroup *cgroup;
	unsigned long id;

	if (rmdir_event)
		return;
	mutex_lock(&tenants_change);
	xa_for_each(&tenants, id, tenant) {
		cgroup = cgroup_get_from_id(id);
		if (IS_ERR(cgroup) || !is_online(cgroup))
			erase(id);
		if (!IS_ERR(cgroup))
			cgroup_put(cgroup);
	}
	mutex_unlock(&tenants_change);
}

bool memsluice_owns(struct memsluice_owner *owner, struct folio *folio)
{
	struct memsluice_tenant *tenant;
	struct mem_cgroup *memcg;

	rcu_read_lock();
	memcg = folio_memcg(folio);
	if (!memcg) {
		rcu_read_unlock();
		return false;
	}
	if (memcg != owner->last) {
		tenant = memsluice_tenant_of(memcg->css.cgroup);
		owner->last = memcg;
		owner->last_is_ours = tenant == owner->tenant;
		if (tenant)
			memsluice_tenant_put(tenant);
	}
	rcu_read_unlock();
	return owner->last_is_ours;
}

void memsluice_tenant_status(struct memsluice_tenant *tenant,
			     struct memsluice_tenant_status *status)
{
	int i;

	status->cgroup_id = tenant->cgroup_id;
	status->promoted_pages = atomic64_read(&tenant->promoted_pages);
	status->demoted_pages = atomic64_read(&tenant->demoted_pages);
	for (i = 0; i < MEMSLUICE_REFUSALS; i++)
		status->refused_pages[i] = atomic64_read(&tenant->refused_pages[i]);

	spin_lock(&tenant->lock);
	status->policy = tenant->policy;
	memcpy(status->fast_histogram_pages, tenant->result.fast.pages,
	       sizeof(status->fast_histogram_pages));
	memcpy(status->slow_histogram_pages, tenant->result.slow.pages,
	       sizeof(status->slow_histogram_pages));
	status->fast_bytes = memsluice_histogram_pages(&tenant->result.fast) << PAGE_SHIFT;
	status->slow_bytes = memsluice_histogram_pages(&tenant->result.slow) << PAGE_SHIFT;
	status->hot_bin = tenant->hot_bin;
	status->cold_bin = tenant->cold_bin;
	status->scans = tenant->result.scans;
	status->scanned_pages = tenant->result.scanned_pages;
	status->scan_cpu_us = tenant->result.scan_cpu_us;
	status->processes = tenant->result.processes;
	spin_unlock(&tenant->lock);
}
