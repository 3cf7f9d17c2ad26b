// SPDX-License-Identifier: GPL-2.0
#include <linux/memory-tiers.h>

int next_demotion_node(int node, const nodemask_t *allowed);
