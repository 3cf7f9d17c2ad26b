/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_CHANNEL_SPREAD_H
#define MEMSLUICE_CHANNEL_SPREAD_H

#include <linux/types.h>

#include "include/uapi/memsluice.h"

/*
 * Which node each granule of a range lies on, by weight. Pure: also compiled into the tests on the
 * host.
 */
struct memsluice_spread {
	u32 slots; /* 1 to MEMSLUICE_SPREAD_SLOTS */
	u32 nodes; /* different ones */
	u16 slot[MEMSLUICE_SPREAD_SLOTS]; /* a node; each as often as its weight says */
	u16 node[MEMSLUICE_CHANNELS_MAX]; /* those with a weight, then those for when these are full */
	u32 fallbacks; /* of the latter, behind the first @nodes */
};

/**
 * memsluice_spread_make() - what some channels with weights come to
 * @spread: out
 * @channels: different nodes; those with weight 0 are used, in this order, when the others are full
 * @count: how many
 *
 * Return: 0; -EINVAL when there are none or too many, no weight, or a node twice; -ERANGE when the
 * weights, divided by what divides them all, add up to more than MEMSLUICE_SPREAD_SLOTS.
 */
int memsluice_spread_make(struct memsluice_spread *spread, const struct memsluice_channel *channels,
			  u32 count);

/**
 * memsluice_spread_node() - the node of a granule
 * @granule: its number in whatever is spread
 *
 * Of as many granules in a row as there are slots, beginning at a multiple of that, each node has
 * exactly its weight; of any others in a row it misses that by less than two. Which comes first is
 * another in each such block, so that what is accessed in strides is spread, too.
 */
u16 memsluice_spread_node(const struct memsluice_spread *spread, u64 granule);

#endif
