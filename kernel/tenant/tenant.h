/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_TENANT_H
#define MEMSLUICE_TENANT_H

#include <linux/atomic.h>
#include <linux/cgroup.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>

#include "include/uapi/memsluice.h"
#include "kernel/channel/spread.h"
#include "kernel/hotness/histogram.h"
#include "kernel/tier/policy.h"

struct folio;
struct mem_cgroup;

/* What the last complete scan of a tenant found. */
struct memsluice_scan_result {
	struct memsluice_histogram fast;
	struct memsluice_histogram slow;
	u64 scans;
	u64 scanned_pages;
	u64 scan_cpu_us;
	u32 processes;
};

/* Where new pages of a tenant lie. Nothing of it changes but the counts. */
struct memsluice_placed {
	struct rcu_head rcu;
	struct memsluice_spread spread;
	unsigned int granule_order;
	u32 count;
	struct memsluice_channel channels[MEMSLUICE_CHANNELS_MAX]; /* as they were given */
	atomic64_t fallback_folios;
	atomic64_t spilled_folios;
};

/*
 * A tenant is known by the id of its cgroup and holds no reference on it: a cgroup may go at any
 * time, and the tenant then follows. Policies, results and bins are under @lock.
 */
struct memsluice_tenant {
	u64 cgroup_id;
	refcount_t references;
	struct rcu_head rcu;
	bool gone; /* its cgroup has been removed */
	struct memsluice_placed __rcu *placed; /* NULL: the kernel places */

	spinlock_t lock;
	struct memsluice_policy policy;
	struct memsluice_scan_result result;
	struct memsluice_rate promote_rate;
	struct memsluice_rate demote_rate;
	u32 hot_bin;
	u32 cold_bin;

	atomic64_t promoted_pages;
	atomic64_t demoted_pages;
	atomic64_t refused_pages[MEMSLUICE_REFUSALS];
};

/**
 * memsluice_tenants_start() - begin to follow the removal of cgroups
 * @events: out: false when the kernel does not tell and memsluice_tenants_sweep() must find out
 * @placed_ended: called when a tenant with a placement has ended, in process context
 */
int memsluice_tenants_start(bool *events, void (*placed_ended)(void));
void memsluice_tenants_stop(void);

/**
 * memsluice_tenant_set() - make a cgroup a tenant, or change its policy
 * @cgroup: the caller's reference
 *
 * Context: process.
 * Return: 0; -EOPNOTSUPP when the memory controller is not enabled for the cgroup, so that nothing
 * is charged to it; -ENOENT when it is being removed; -ENOMEM.
 */
int memsluice_tenant_set(struct cgroup *cgroup, const struct memsluice_policy *policy);

/* Return: 0, or -ENOENT. */
int memsluice_tenant_clear(u64 cgroup_id);

/* Both return a reference, or NULL. */
struct memsluice_tenant *memsluice_tenant_get(u64 cgroup_id);
/* The tenant with the lowest id above @cgroup_id. */
struct memsluice_tenant *memsluice_tenant_next(u64 cgroup_id);
void memsluice_tenant_put(struct memsluice_tenant *tenant);

/* The nearest tenant at or above a cgroup, with a reference, or NULL. Context: RCU read side. */
struct memsluice_tenant *memsluice_tenant_of(struct cgroup *cgroup);

/* These without a reference: it stays as long as the read side does. */
struct memsluice_tenant *memsluice_tenant_peek(struct cgroup *cgroup);
struct memsluice_tenant *memsluice_tenant_peek_id(u64 cgroup_id);

/* Gives a tenant another placement, or none. Return: the one that it had; readers may use it yet. */
struct memsluice_placed *memsluice_tenant_place(struct memsluice_tenant *tenant,
						struct memsluice_placed *placed);

/*
 * The id of the nearest tenant at or above what a folio is charged to; 0: there is none. Context:
 * nobody else can charge the folio to another, since it is locked, or isolated.
 */
u64 memsluice_tenant_id_of(struct folio *folio);

struct memsluice_policy memsluice_tenant_policy(struct memsluice_tenant *tenant);

/* Removes tenants whose cgroup has gone, where the kernel does not tell. Context: process. */
void memsluice_tenants_sweep(void);

/* A walk over many pages of one tenant, with the answer for the last memory cgroup at hand. */
struct memsluice_owner {
	const struct memsluice_tenant *tenant;
	const struct mem_cgroup *last;
	bool last_is_ours;
};

/**
 * memsluice_owns() - is a page charged to a tenant, rather than to another or to nobody?
 * @owner: zero except for its tenant, for the length of one walk under one lock
 * @folio: mapped, and kept so by the page table lock
 */
bool memsluice_owns(struct memsluice_owner *owner, struct folio *folio);

void memsluice_tenant_status(struct memsluice_tenant *tenant,
			     struct memsluice_tenant_status *status);

#endif
