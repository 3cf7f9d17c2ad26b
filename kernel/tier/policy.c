// SPDX-License-Identifier: GPL-2.0
#include "kernel/tier/policy.h"

#include <linux/minmax.h>

#define NS_PER_S 1000000000ULL

static u64 both(const struct memsluice_tier_state *state, u32 first)
{
	return memsluice_histogram_between(&state->fast, first, MEMSLUICE_BINS - 1) +
	       memsluice_histogram_between(&state->slow, first, MEMSLUICE_BINS - 1);
}

/* What the tenant can have in tier 0: its limit, or what it has and what is free. */
static u64 share_pages(const struct memsluice_tier_state *state)
{
	u64 reach = memsluice_histogram_pages(&state->fast) + state->fast_room_pages;

	reach -= min(reach, state->fast_deficit_pages);
	return min(state->fast_limit_pages, reach);
}

/* Bin 0 has not been accessed for long: it is never hot, however much room there is. */
static u32 hot_bin(const struct memsluice_tier_state *state, u64 share)
{
	u32 bin = MEMSLUICE_BINS;

	while (bin > 1 && both(state, bin - 1) <= share)
		bin--;
	return bin;
}

static u32 warm_bin(const struct memsluice_tier_state *state, u32 hot, u64 share)
{
	return hot > 1 && both(state, hot) < share - share / 4 ? hot - 1 : hot;
}

/* The highest bin from which upwards there are @pages, but none below @least. */
static u32 bin_from_above(const struct memsluice_histogram *histogram, u64 pages, u32 least)
{
	u32 bin = MEMSLUICE_BINS - 1;

	while (bin > least &&
	       memsluice_histogram_between(histogram, bin, MEMSLUICE_BINS - 1) < pages)
		bin--;
	return bin;
}

static u32 bin_from_below(const struct memsluice_histogram *histogram, u64 pages)
{
	u32 bin = 0;

	while (bin < MEMSLUICE_BINS - 1 && memsluice_histogram_between(histogram, 0, bin) < pages)
		bin++;
	return bin;
}

static u64 excess(u64 what, u64 over)
{
	return what > over ? what - over : 0;
}

static void plan_demotion(const struct memsluice_tier_state *state, u64 room, u64 hot_slow,
			  struct memsluice_tier_plan *plan)
{
	u64 usage = memsluice_histogram_pages(&state->fast);
	u64 forced = max(excess(usage, state->fast_limit_pages), state->fast_deficit_pages);
	u64 cold = plan->cold_bin < MEMSLUICE_BINS ?
			   memsluice_histogram_between(&state->fast, 0, plan->cold_bin) :
			   0;
	u64 wanted = max(forced, min(cold, forced + excess(hot_slow, room)));

	plan->demote_pages = min3(wanted, usage, state->demote_budget_pages);
	plan->demote_bin = bin_from_below(&state->fast, plan->demote_pages);
}

static void plan_promotion(const struct memsluice_tier_state *state, u64 room, u32 least,
			   struct memsluice_tier_plan *plan)
{
	u64 candidates = memsluice_histogram_between(&state->slow, least, MEMSLUICE_BINS - 1);

	plan->promote_pages = min3(candidates, room, state->promote_budget_pages);
	plan->promote_bin = bin_from_above(&state->slow, plan->promote_pages, least);
}

struct memsluice_tier_plan memsluice_plan_tiers(const struct memsluice_tier_state *state)
{
	u64 usage = memsluice_histogram_pages(&state->fast);
	u64 room = min(state->fast_room_pages, excess(state->fast_limit_pages, usage));
	u64 share = share_pages(state);
	struct memsluice_tier_plan plan = { .hot_bin = hot_bin(state, share) };
	u32 warm = warm_bin(state, plan.hot_bin, share);
	u64 hot_slow;

	plan.cold_bin = warm ? warm - 1 : MEMSLUICE_BINS;
	hot_slow = memsluice_histogram_between(&state->slow, plan.hot_bin, MEMSLUICE_BINS - 1);
	plan_demotion(state, room, hot_slow, &plan);
	plan_promotion(state, room, warm, &plan);
	return plan;
}

u64 memsluice_rate_refill(struct memsluice_rate *rate, u64 pages_per_s, u64 now_ns)
{
	u64 past_ns = min(now_ns - rate->at_ns, NS_PER_S);
	u64 more = pages_per_s * past_ns / NS_PER_S;

	/* Time that has not yet made a whole page is kept. */
	if (more || !pages_per_s)
		rate->at_ns = now_ns;
	rate->pages = min(rate->pages + more, pages_per_s);
	return rate->pages;
}

void memsluice_rate_take(struct memsluice_rate *rate, u64 pages)
{
	rate->pages -= min(rate->pages, pages);
}
