// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

extern "C" {
#include "kernel/tier/policy.h"
}

namespace {

constexpr u64 kAll = ~0ULL;
constexpr u32 kLast = MEMSLUICE_BINS - 1;

memsluice_tier_state state() {
  memsluice_tier_state state = {};
  state.fast_limit_pages = kAll;
  state.promote_budget_pages = kAll;
  state.demote_budget_pages = kAll;
  return state;
}

TEST(TierPolicy, HotPagesGoIntoFreeRoomHottestFirst) {
  auto now = state();
  now.slow.pages[13] = 100;
  now.slow.pages[10] = 100;
  now.slow.pages[0] = 1000;
  now.fast_room_pages = 150;
  auto plan = memsluice_plan_tiers(&now);
  EXPECT_EQ(plan.hot_bin, 11U);
  EXPECT_EQ(plan.promote_pages, 150U) << "what is warm fills the room that hot pages leave";
  EXPECT_EQ(plan.promote_bin, 10U);
  EXPECT_EQ(plan.demote_pages, 0U);
  now.fast_room_pages = 60;
  plan = memsluice_plan_tiers(&now);
  EXPECT_EQ(plan.promote_pages, 60U);
  EXPECT_EQ(plan.promote_bin, 13U);
}

TEST(TierPolicy, ColdPagesMakeRoomForHotOnes) {
  auto now = state();
  now.fast.pages[0] = 80;
  now.fast.pages[13] = 20;
  now.slow.pages[12] = 50;
  now.slow.pages[0] = 500;
  now.fast_limit_pages = 100;
  auto plan = memsluice_plan_tiers(&now);
  EXPECT_LE(plan.hot_bin, 12U);
  EXPECT_EQ(plan.demote_pages, 50U);
  EXPECT_EQ(plan.demote_bin, 0U);
  EXPECT_EQ(plan.promote_pages, 0U) << "only once there is room";
}

TEST(TierPolicy, EquallyHotPagesStayWhereTheyAre) {
  auto now = state();
  now.fast.pages[13] = 100;
  now.slow.pages[13] = 300;
  now.fast_limit_pages = 100;
  auto plan = memsluice_plan_tiers(&now);
  EXPECT_EQ(plan.promote_pages, 0U);
  EXPECT_EQ(plan.demote_pages, 0U);
}

TEST(TierPolicy, WhatNobodyAccessesIsNotPromoted) {
  auto now = state();
  now.slow.pages[0] = 1000;
  now.fast_room_pages = 5000;
  EXPECT_EQ(memsluice_plan_tiers(&now).promote_pages, 0U);
}

TEST(TierPolicy, ALoweredLimitIsObeyedEvenWithHotPages) {
  auto now = state();
  now.fast.pages[13] = 100;
  now.fast.pages[2] = 10;
  now.fast_limit_pages = 40;
  auto plan = memsluice_plan_tiers(&now);
  EXPECT_EQ(plan.demote_pages, 70U);
  EXPECT_EQ(plan.demote_bin, 13U);
  EXPECT_EQ(plan.promote_pages, 0U);
}

TEST(TierPolicy, ADeficitOfTheTierIsMadeGood) {
  auto now = state();
  now.fast.pages[5] = 100;
  now.fast_deficit_pages = 30;
  auto plan = memsluice_plan_tiers(&now);
  EXPECT_EQ(plan.demote_pages, 30U);
  EXPECT_EQ(plan.promote_pages, 0U);
}

TEST(TierPolicy, PropertiesOfAnyPlan) {
  std::mt19937_64 random(3);
  auto some = [&](u64 most) { return random() % 3 ? random() % (most + 1) : 0; };
  for (int run = 0; run < 20000; run++) {
    auto now = state();
    for (u32 bin = 0; bin < MEMSLUICE_BINS; bin++) {
      now.fast.pages[bin] = some(1000);
      now.slow.pages[bin] = some(1000);
    }
    if (random() % 2) now.fast_limit_pages = some(20000);
    now.fast_room_pages = some(5000);
    now.fast_deficit_pages = now.fast_room_pages ? 0 : some(2000);
    if (random() % 2) now.promote_budget_pages = some(3000);
    if (random() % 2) now.demote_budget_pages = some(3000);
    auto plan = memsluice_plan_tiers(&now);
    u64 fast = memsluice_histogram_pages(&now.fast);

    EXPECT_GE(plan.hot_bin, 1U);
    EXPECT_LE(plan.hot_bin, MEMSLUICE_BINS);
    EXPECT_TRUE(plan.cold_bin < plan.hot_bin || plan.cold_bin == MEMSLUICE_BINS);
    // Promotion stays within budget, room, limit and what there is.
    EXPECT_LE(plan.promote_pages, now.promote_budget_pages);
    EXPECT_LE(plan.promote_pages, now.fast_room_pages);
    EXPECT_LE(plan.promote_pages, memsluice_histogram_between(&now.slow, plan.promote_bin, kLast));
    if (plan.promote_pages) {
      EXPECT_LE(fast + plan.promote_pages, now.fast_limit_pages);
    }
    if (plan.promote_pages) {
      EXPECT_GE(plan.promote_bin, 1U);
    }
    // Nothing is promoted that may be demoted: no page goes to and fro on one histogram.
    if (plan.promote_pages && plan.cold_bin != MEMSLUICE_BINS) {
      EXPECT_GT(plan.promote_bin, plan.cold_bin);
    }
    // Demotion stays within budget and what there is, and takes no bin more than it must.
    EXPECT_LE(plan.demote_pages, now.demote_budget_pages);
    EXPECT_LE(plan.demote_pages, memsluice_histogram_between(&now.fast, 0, plan.demote_bin));
    if (plan.demote_bin) {
      EXPECT_LT(memsluice_histogram_between(&now.fast, 0, plan.demote_bin - 1), plan.demote_pages);
    }
    // Only a limit or a deficit drives out pages that are not cold.
    u64 forced = std::max(fast > now.fast_limit_pages ? fast - now.fast_limit_pages : 0,
                          now.fast_deficit_pages);
    u64 cold = plan.cold_bin == MEMSLUICE_BINS
                   ? 0
                   : memsluice_histogram_between(&now.fast, 0, plan.cold_bin);
    EXPECT_LE(plan.demote_pages, std::max(forced, cold));
    EXPECT_GE(plan.demote_pages, std::min({forced, fast, now.demote_budget_pages}));
    // The hot set fits into the tenant's share.
    u64 reach = fast + now.fast_room_pages;
    u64 share = std::min(now.fast_limit_pages, reach - std::min(reach, now.fast_deficit_pages));
    EXPECT_LE(memsluice_histogram_between(&now.fast, plan.hot_bin, kLast) +
                  memsluice_histogram_between(&now.slow, plan.hot_bin, kLast),
              share);
  }
}

TEST(Rate, NeverExceedsItsLimitOverTime) {
  std::mt19937_64 random(4);
  for (int run = 0; run < 200; run++) {
    memsluice_rate rate = {};
    u64 per_s = random() % 100000, now_ns = 1000000000ULL * (random() % 1000), begun_ns = now_ns;
    memsluice_rate_refill(&rate, per_s, now_ns);
    memsluice_rate_take(&rate, kAll);
    u64 taken = 0;
    for (int i = 0; i < 200; i++) {
      now_ns += random() % 20000000;
      u64 take = std::min(memsluice_rate_refill(&rate, per_s, now_ns), u64{random() % 5000});
      memsluice_rate_take(&rate, take);
      taken += take;
    }
    u64 allowed =
        static_cast<u64>(static_cast<unsigned __int128>(per_s) * (now_ns - begun_ns) / 1000000000);
    EXPECT_LE(taken, allowed);
  }
}

TEST(Rate, SmallStepsLoseNothing) {
  memsluice_rate rate = {};
  memsluice_rate_refill(&rate, 10, 1000000000ULL);
  memsluice_rate_take(&rate, kAll);
  for (u64 now_ns = 1000000000ULL; now_ns <= 2000000000ULL; now_ns += 1000000)
    memsluice_rate_refill(&rate, 10, now_ns);
  EXPECT_GE(rate.pages, 9U);
}

TEST(Rate, ZeroStaysEmptyAndABucketHoldsOneSecond) {
  memsluice_rate rate = {};
  EXPECT_EQ(memsluice_rate_refill(&rate, 0, 5000000000ULL), 0U);
  EXPECT_EQ(memsluice_rate_refill(&rate, 100, 500000000000ULL), 100U);
  EXPECT_EQ(memsluice_rate_refill(&rate, 50, 500000000001ULL), 50U)
      << "a lowered limit holds at once";
}

}  // namespace
