/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMSLUICE_TIER_POLICY_H
#define MEMSLUICE_TIER_POLICY_H

#include "kernel/hotness/histogram.h"

/*
 * What shall be promoted and demoted. Pure: values in, values out; also compiled into the tests on
 * the host. All in base pages.
 */

struct memsluice_tier_state {
	struct memsluice_histogram fast; /* the tenant's pages in tier 0 */
	struct memsluice_histogram slow; /* and elsewhere */
	u64 fast_limit_pages; /* the most it may hold in tier 0 */
	u64 fast_room_pages; /* free in tier 0 above what shall stay free */
	u64 fast_deficit_pages; /* its part of what tier 0 lacks */
	u64 promote_budget_pages; /* what the limits on bandwidth leave */
	u64 demote_budget_pages;
};

struct memsluice_tier_plan {
	u32 hot_bin; /* this bin and above belong in tier 0 */
	u32 cold_bin; /* this bin and below may leave it; MEMSLUICE_BINS: none */
	u64 promote_pages;
	u32 promote_bin; /* from this bin and above */
	u64 demote_pages;
	u32 demote_bin; /* from this bin and below */
};

/**
 * memsluice_plan_tiers() - thresholds and amounts from the histograms of one tenant
 *
 * The hot bin is the lowest for which it and all above it fit into the tenant's share of tier 0
 * (MEMTIS, SOSP '23, section 4.2.1). Between hot and cold lies one warm bin when the hot set fills
 * less than three quarters of the share: warm pages are not demoted to make room, so that a page
 * at the threshold does not go to and fro. Room that hot pages leave goes to warm ones. Hotter
 * pages go up first, colder ones down first. What is above the limit leaves whatever its bin.
 */
struct memsluice_tier_plan memsluice_plan_tiers(const struct memsluice_tier_state *state);

/* A limit on bandwidth: a bucket that holds at most one second's worth. */
struct memsluice_rate {
	u64 pages;
	u64 at_ns;
};

/* Fills the bucket up to now, with at most 2^34 pages a second. Return: the pages in it. */
u64 memsluice_rate_refill(struct memsluice_rate *rate, u64 pages_per_s, u64 now_ns);
void memsluice_rate_take(struct memsluice_rate *rate, u64 pages);

#endif
