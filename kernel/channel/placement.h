/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_CHANNEL_PLACEMENT_H
#define MEMSLUICE_CHANNEL_PLACEMENT_H

#include "include/uapi/memsluice.h"
#include "kernel/tenant/tenant.h"

struct folio;
struct vm_area_struct;

/**
 * memsluice_placement_set() - new pages of a tenant lie on these channels from now on
 * @placement: its nodes have memory; @count 0: the kernel places again
 *
 * Context: process.
 * Return: 0; -ENOENT when there is no such tenant; -EINVAL and
 * -ERANGE as memsluice_spread_make(); -ENODEV when a node is being taken away; -EOPNOTSUPP when the allocator cannot be hooked; -EBUSY when
 * ftrace is switched off; -ENOMEM.
 */
int memsluice_placement_set(const struct memsluice_placement *placement);

/* Of the tenant @placement->cgroup_id. Return: 0; -ENOENT; -ENODATA when it has none. */
int memsluice_placement_get(struct memsluice_placement *placement);

/**
 * memsluice_placement_index() - by what a folio that is there is spread
 * @folio: locked, or mapped by a page table that is
 *
 * Return: 0; -1 - reason when it is not ours to place.
 */
int memsluice_placement_index(struct folio *folio, u64 *index);

/**
 * memsluice_placement_target() - the node to which a folio of a tenant goes
 * @nid: where it is
 *
 * Return: where it is when it belongs there; where it belongs, if there is room; for one that lies on
 * no channel of the tenant, another channel that has room; else -1 - MEMSLUICE_REFUSED_NO_MEMORY.
 */
int memsluice_placement_target(const struct memsluice_placed *placed, u64 index, unsigned int order,
			       int nid);

/*
 * Whether the process of a mapping lets its pages go to a node. Return: 0, or -1 - reason. Context:
 * the mapping stays meanwhile; does not sleep.
 */
int memsluice_placement_may_move(const struct vm_area_struct *vma, int target);

/*
 * No tenant is placed on a node until it is offered again. Return: 0; -EBUSY: one is, @tenant_id.
 * Context: process.
 */
int memsluice_placement_withdraw(int nid, u64 *tenant_id);
void memsluice_placement_offer(int nid);

/* Some tenant with a placement has ended: what is hooked may have become needless. Context: any. */
void memsluice_placement_tenant_ended(void);

/* When there is no tenant any more. */
void memsluice_placement_stop(void);

#endif
