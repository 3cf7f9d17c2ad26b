/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_CHANNEL_PLACEMENT_H
#define MEMSLUICE_CHANNEL_PLACEMENT_H

#include "include/uapi/memsluice.h"

/**
 * memsluice_placement_set() - new pages of a tenant lie on these channels from now on
 * @placement: its nodes have memory; @count 0: the kernel places again
 *
 * Context: process.
 * Return: 0; -ENOENT when there is no such tenant; -EINVAL and
 * -ERANGE as memsluice_spread_make(); -EOPNOTSUPP when the allocator cannot be hooked; -EBUSY when
 * ftrace is switched off; -ENOMEM.
 */
int memsluice_placement_set(const struct memsluice_placement *placement);

/* Of the tenant @placement->cgroup_id. Return: 0; -ENOENT; -ENODATA when it has none. */
int memsluice_placement_get(struct memsluice_placement *placement);

/* Some tenant with a placement has ended: what is hooked may have become needless. Context: any. */
void memsluice_placement_tenant_ended(void);

/* When there is no tenant any more. */
void memsluice_placement_stop(void);

#endif
