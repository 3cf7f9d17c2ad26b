// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <vector>

extern "C" {
#include "kernel/channel/spread.h"
}

namespace {

using Channels = std::vector<memsluice_channel>;

int make(memsluice_spread& spread, const Channels& channels) {
  return memsluice_spread_make(&spread, channels.data(), static_cast<uint32_t>(channels.size()));
}

memsluice_spread made(const Channels& channels) {
  memsluice_spread spread;
  EXPECT_EQ(make(spread, channels), 0);
  return spread;
}

std::map<int, int> counts(const memsluice_spread& spread, uint64_t begin, uint64_t granules,
                          uint64_t stride = 1) {
  std::map<int, int> counted;
  for (uint64_t i = 0; i < granules; i++)
    counted[memsluice_spread_node(&spread, begin + i * stride)]++;
  return counted;
}

TEST(Spread, OneChannelHasAll) {
  const auto spread = made({{5, 7}});
  EXPECT_EQ(spread.slots, 1u);
  EXPECT_EQ(counts(spread, 0, 1000), (std::map<int, int>{{5, 1000}}));
}

TEST(Spread, WeightsAreKeptExactly) {
  const auto spread = made({{1, 3}, {2, 2}, {3, 1}});
  EXPECT_EQ(counts(spread, 0, 6000), (std::map<int, int>{{1, 3000}, {2, 2000}, {3, 1000}}));
  EXPECT_EQ(counts(spread, uint64_t{6} << 40, 6), (std::map<int, int>{{1, 3}, {2, 2}, {3, 1}}));
}

TEST(Spread, OnlyTheProportionCounts) {
  const auto large = made({{1, 36'000}, {2, 36'000}, {3, 36'000}, {4, 27'000}});
  EXPECT_EQ(large.slots, 15u);
  EXPECT_EQ(counts(large, 0, 15), (std::map<int, int>{{1, 4}, {2, 4}, {3, 4}, {4, 3}}));
}

TEST(Spread, WhatHasNoWeightIsForLater) {
  const auto spread = made({{9, 0}, {1, 1}, {8, 0}, {2, 1}});
  EXPECT_EQ(spread.nodes, 2u);
  EXPECT_EQ(spread.fallbacks, 2u);
  EXPECT_EQ(spread.node[0], 1);
  EXPECT_EQ(spread.node[1], 2);
  EXPECT_EQ(spread.node[2], 9);
  EXPECT_EQ(spread.node[3], 8);
  EXPECT_EQ(counts(spread, 0, 100), (std::map<int, int>{{1, 50}, {2, 50}}));
}

TEST(Spread, WhatMeansNothingIsRefused) {
  memsluice_spread spread;
  EXPECT_EQ(make(spread, {}), -EINVAL);
  EXPECT_EQ(make(spread, {{1, 0}}), -EINVAL);
  EXPECT_EQ(make(spread, {{1, 1}, {2, 1}, {1, 1}}), -EINVAL);
  EXPECT_EQ(make(spread, Channels(MEMSLUICE_CHANNELS_MAX + 1, {1, 1})), -EINVAL);
  EXPECT_EQ(make(spread, {{1, 64}, {2, 1}}), -ERANGE);
  EXPECT_EQ(make(spread, {{1, UINT32_MAX}, {2, UINT32_MAX - 1}}), -ERANGE);
  EXPECT_EQ(make(spread, {{1, 63}, {2, 1}}), 0);
  EXPECT_EQ(make(spread, {{1, UINT32_MAX}, {2, UINT32_MAX}}), 0);
}

// A matrix by columns, a table of records: whatever the stride, all channels are used, each by no
// more than half above its weight.
TEST(Spread, NoStrideMeetsOneChannelOnly) {
  const auto spread = made({{1, 1}, {2, 1}, {3, 1}, {4, 1}});
  constexpr int kGranules = 4096;
  for (uint64_t stride : {2, 3, 4, 7, 8, 12, 16, 64, 256, 512, 1000, 1024, 4096, 1 << 20}) {
    for (const auto& [node, count] : counts(spread, 0, kGranules, stride)) {
      EXPECT_GT(count, kGranules / 8) << "node " << node << ", stride " << stride;
      EXPECT_LT(count, kGranules * 3 / 8) << "node " << node << ", stride " << stride;
    }
  }
}

RC_GTEST_PROP(Spread, ARangeMissesTheWeightsByLessThanTwo, ()) {
  Channels channels;
  const auto weights = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange(0u, 12u));
  for (size_t i = 0; i < weights.size() && i < 5; i++)
    channels.push_back({static_cast<uint32_t>(i), weights[i]});
  memsluice_spread spread;
  if (make(spread, channels) != 0) RC_DISCARD();
  const auto begin = *rc::gen::arbitrary<uint64_t>() >> 8;
  const auto granules = *rc::gen::inRange<uint64_t>(1, 3000);
  auto counted = counts(spread, begin, granules);
  double sum = 0;
  for (const auto& channel : channels) sum += channel.weight;
  for (const auto& channel : channels) {
    const double due = static_cast<double>(granules) * channel.weight / sum;
    RC_ASSERT(std::abs(counted[static_cast<int>(channel.node)] - due) < 2.0);
  }
}

}  // namespace
