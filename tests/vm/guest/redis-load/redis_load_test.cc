// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "tests/vm/guest/redis-load/distribution.h"
#include "tests/vm/guest/redis-load/latency_histogram.h"
#include "tests/vm/guest/redis-load/value.h"

namespace memsluice::guest {
namespace {

class ZipfTest : public testing::TestWithParam<double> {};

TEST_P(ZipfTest, FollowsItsProbabilities) {
  constexpr uint64_t kCount = 50;
  constexpr int kPicks = 400'000;
  const Zipf zipf(kCount, GetParam());
  Random random(1);
  std::vector<int> picked(kCount);
  for (int i = 0; i < kPicks; ++i) ++picked.at(zipf.pick(random));
  double weights = 0;
  for (uint64_t rank = 0; rank < kCount; ++rank) {
    weights += std::pow(static_cast<double>(rank + 1), -GetParam());
  }
  for (uint64_t rank = 0; rank < kCount; ++rank) {
    const double share = std::pow(static_cast<double>(rank + 1), -GetParam()) / weights;
    const double deviation = std::sqrt(kPicks * share * (1 - share));
    EXPECT_NEAR(picked[rank], kPicks * share, 5 * deviation) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Exponents, ZipfTest, testing::Values(0.2, 0.99, 1.0, 1.5));

TEST(Zipf, OfOneIsThatOne) {
  const Zipf zipf(1, 0.99);
  Random random(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(zipf.pick(random), 0u);
}

TEST(Hot, PutsItsShareIntoTheFirstRanks) {
  const Hot hot(1000, 0.1, 0.9);
  Random random(2);
  int in_hot = 0;
  std::set<uint64_t> seen;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t rank = hot.pick(random);
    ASSERT_LT(rank, 1000u);
    seen.insert(rank);
    if (rank < 100) ++in_hot;
  }
  EXPECT_NEAR(in_hot, 90'000, 500);
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Skew, ReadsBothKinds) {
  const auto zipf = Skew::parse("zipf:1.2");
  ASSERT_TRUE(zipf.ok());
  EXPECT_TRUE(zipf->is_zipf);
  EXPECT_EQ(zipf->exponent, 1.2);
  const auto hot = Skew::parse("hot:0.1:0.95");
  ASSERT_TRUE(hot.ok());
  EXPECT_FALSE(hot->is_zipf);
  EXPECT_EQ(hot->fraction, 0.1);
  EXPECT_EQ(hot->share, 0.95);
  for (const char* wrong : {"", "zipf", "zipf:", "zipf:0", "zipf:1x", "zipf:-1", "hot:0.1",
                            "hot:0:0.9", "hot:0.1:1.1", "hot:2:0.5", "hot:0.1:0.9:1", "uniform"}) {
    EXPECT_FALSE(Skew::parse(wrong).ok()) << wrong;
  }
}

// The keys of the hot ranks, found by picking.
std::set<uint64_t> keys_picked(const KeyPicker& picker, uint64_t shifts) {
  Random random(3);
  std::set<uint64_t> keys;
  for (int i = 0; i < 5000; ++i) keys.insert(picker.pick(random, shifts));
  return keys;
}

TEST(KeyPicker, HotKeysAreNeighboursAndMoveByTheirNumber) {
  const KeyPicker picker(*Skew::parse("hot:0.01:1"), 10'000, false);
  for (uint64_t shifts : {0, 1, 99, 100}) {
    const auto keys = keys_picked(picker, shifts);
    EXPECT_EQ(keys.size(), 100u);
    EXPECT_EQ(*keys.begin(), shifts % 100 * 100);
    EXPECT_EQ(*keys.rbegin(), shifts % 100 * 100 + 99);
  }
}

TEST(KeyPicker, ScatterSpreadsThemOverAllKeys) {
  const KeyPicker picker(*Skew::parse("hot:0.01:1"), 10'000, true);
  const auto keys = keys_picked(picker, 0);
  EXPECT_EQ(keys.size(), 100u) << "different ranks are different keys";
  uint64_t before = 0;
  for (const uint64_t key : keys) {
    EXPECT_LT(key - before, 500u) << "a gap after " << before;
    before = key;
  }
}

TEST(KeyPicker, ShiftsAZipfCurveByATenth) {
  const KeyPicker picker(*Skew::parse("zipf:5"), 1000, false);
  EXPECT_EQ(*keys_picked(picker, 0).begin(), 0u);
  EXPECT_EQ(*keys_picked(picker, 3).begin(), 300u);
}

TEST(Value, EveryByteIsVerified) {
  for (const size_t bytes : {kMinValueBytes, uint64_t{100}, uint64_t{1031}}) {
    std::string value(bytes, '\0'), scratch(bytes, '\0');
    make_value(7, 3, value);
    EXPECT_EQ(verify_value(7, value, scratch), 3u);
    for (size_t i = 0; i < bytes; ++i) {
      value[i] = static_cast<char>(value[i] ^ 1);
      EXPECT_EQ(verify_value(7, value, scratch), std::nullopt) << "byte " << i;
      value[i] = static_cast<char>(value[i] ^ 1);
    }
    EXPECT_EQ(verify_value(8, value, scratch), std::nullopt) << "another key's";
    EXPECT_EQ(verify_value(7, value.substr(1), scratch), std::nullopt);
    EXPECT_EQ(verify_value(7, "", scratch), std::nullopt);
  }
}

TEST(LatencyHistogram, PercentilesAreWithinABucket) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.percentile(99), 0u);
  for (uint64_t i = 1; i <= 100'000; ++i) histogram.add(i * 1000);
  EXPECT_EQ(histogram.count(), 100'000u);
  EXPECT_EQ(histogram.max(), 100'000'000u);
  EXPECT_EQ(histogram.percentile(100), 100'000'000u);
  for (const double percent : {0.1, 1.0, 50.0, 90.0, 99.0, 99.9}) {
    const double exact = percent * 1'000'000;
    const auto found = static_cast<double>(histogram.percentile(percent));
    EXPECT_GE(found, exact);
    EXPECT_LE(found, exact * (1 + 1.0 / 32));
  }
}

TEST(LatencyHistogram, TakesAnyTime) {
  LatencyHistogram histogram;
  for (const uint64_t time : {uint64_t{0}, uint64_t{63}, uint64_t{64}, UINT64_MAX}) {
    histogram.add(time);
  }
  EXPECT_EQ(histogram.percentile(25), 0u);
  EXPECT_EQ(histogram.percentile(50), 63u);
  EXPECT_EQ(histogram.percentile(75), 65u);
  EXPECT_EQ(histogram.percentile(100), UINT64_MAX);
}

}  // namespace
}  // namespace memsluice::guest
