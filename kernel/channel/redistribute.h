/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_CHANNEL_REDISTRIBUTE_H
#define MEMSLUICE_CHANNEL_REDISTRIBUTE_H

#include "kernel/migrate/requests.h"

/**
 * memsluice_redistribute() - make a request bring what a tenant has to where its placement has it
 * @spec: its @cgroup_id and @source_node are set
 * @on_touch: mark only; each page moves when it is touched
 *
 * The placement is looked up page by page: when it changes meanwhile, the rest goes by the new one.
 *
 * Return: 0; -ENOENT when there is no such tenant; -ENODATA when it has no placement.
 */
int memsluice_redistribute(struct memsluice_request_spec *spec, bool on_touch);

#endif
