// SPDX-License-Identifier: GPL-2.0
#include "kernel/channel/spread.h"

#include <linux/errno.h>
#include <linux/string.h>

static u32 common_divisor(u32 a, u32 b)
{
	while (b) {
		u32 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static bool has_twice(const struct memsluice_channel *channels, u32 count)
{
	u32 i, j;

	for (i = 0; i < count; i++) {
		for (j = 0; j < i; j++) {
			if (channels[i].node == channels[j].node)
				return true;
		}
	}
	return false;
}

/*
 * Each slot goes to who is furthest behind his weight (smooth weighted round robin), so that nobody's
 * slots lie together.
 */
static void fill_slots(struct memsluice_spread *spread, const struct memsluice_channel *channels,
		       u32 count, u32 divisor)
{
	s32 behind[MEMSLUICE_CHANNELS_MAX] = {};
	u32 slot, i;

	for (slot = 0; slot < spread->slots; slot++) {
		u32 next = 0;

		for (i = 0; i < count; i++) {
			behind[i] += channels[i].weight / divisor;
			if (behind[i] > behind[next])
				next = i;
		}
		behind[next] -= spread->slots;
		spread->slot[slot] = channels[next].node;
	}
}

int memsluice_spread_make(struct memsluice_spread *spread, const struct memsluice_channel *channels,
			  u32 count)
{
	u32 divisor = 0, i;
	u64 sum = 0;

	if (!count || count > MEMSLUICE_CHANNELS_MAX || has_twice(channels, count))
		return -EINVAL;
	memset(spread, 0, sizeof(*spread));
	for (i = 0; i < count; i++) {
		sum += channels[i].weight;
		divisor = common_divisor(divisor, channels[i].weight);
		if (channels[i].weight)
			spread->node[spread->nodes++] = channels[i].node;
	}
	if (!sum)
		return -EINVAL;
	if (sum / divisor > MEMSLUICE_SPREAD_SLOTS)
		return -ERANGE;
	spread->slots = sum / divisor;
	for (i = 0; i < count; i++) {
		if (!channels[i].weight)
			spread->node[spread->nodes + spread->fallbacks++] = channels[i].node;
	}
	fill_slots(spread, channels, count, divisor);
	return 0;
}

/* The finalizer of MurmurHash3: every bit of what goes in changes half of what comes out. */
static u64 mixed(u64 value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdULL;
	value ^= value >> 33;
	value *= 0xc4ceb9fe1a85ec53ULL;
	return value ^ value >> 33;
}

u16 memsluice_spread_node(const struct memsluice_spread *spread, u64 granule)
{
	u32 slots = spread->slots;
	u32 turned = ((mixed(granule / slots) >> 32) * slots) >> 32;
	u32 slot = granule % slots + turned;

	return spread->slot[slot < slots ? slot : slot - slots];
}
