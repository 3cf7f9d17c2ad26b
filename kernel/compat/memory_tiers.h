/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_COMPAT_MEMORY_TIERS_H
#define MEMSLUICE_COMPAT_MEMORY_TIERS_H

#include <linux/nodemask.h>

struct task_struct;

/* True when a node belongs to tier 0: as the kernel's memory tiers say, else the nodes with CPUs. */
bool memsluice_node_is_fast(int nid);

/* True when the host has both fast and slow memory. */
bool memsluice_has_tiers(void);

/**
 * memsluice_demotion_target() - the node on which pages of a fast node go to
 * @nid: the fast node
 * @allowed: nodes that may be used
 *
 * The kernel's demotion order where it has one, else the nearest slow node with memory.
 *
 * Return: a node, or NUMA_NO_NODE.
 */
int memsluice_demotion_target(int nid, const nodemask_t *allowed);

/* The nearest fast node with memory to which pages of @nid may go, or NUMA_NO_NODE. */
int memsluice_promotion_target(int nid, const nodemask_t *allowed);

/*
 * The nodes that a task's cpuset lets it use. cpuset_mems_allowed() says the same, but returns a
 * structure in memory, and functions that do are left out of BTF.
 */
void memsluice_allowed_nodes(struct task_struct *task, nodemask_t *nodes);

struct memsluice_node_memory {
	unsigned long managed_pages;
	unsigned long free_pages; /* for pages of processes, without waking reclaim */
};

/* What all zones of a node have together; zeros for a node that is not online. */
struct memsluice_node_memory memsluice_node_memory(int nid);

#endif
