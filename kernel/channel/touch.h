/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_CHANNEL_TOUCH_H
#define MEMSLUICE_CHANNEL_TOUCH_H

#include "kernel/migrate/requests.h"

/**
 * memsluice_touch_mark() - have the pages of a tenant that lie beside its placement move when touched
 * @request: told of what has been done; moved are those that were marked
 *
 * In each process of the last scan, the entries of such pages allow no access, as NUMA balancing's
 * do: the next access faults, the kernel asks for the policy of the page, and finds the placement's.
 *
 * Return: 0, or -EINTR when the request shall end.
 */
int memsluice_touch_mark(u64 cgroup_id, struct memsluice_request *request);

#endif
