// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/guest/hot-set/hot_set.h"

#include <gtest/gtest.h>

#include <set>

namespace memsluice::guest {
namespace {

TEST(Random, IsTheSameForOneSeedAndStaysInBounds) {
  Random first(1), again(1), other(2);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = first.below(10);
    ASSERT_EQ(value, again.below(10));
    ASSERT_LT(value, 10u);
    seen.insert(value);
    const double unit = other.unit();
    ASSERT_GE(unit, 0);
    ASSERT_LT(unit, 1);
  }
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_NE(Random(1).next(), Random(2).next());
}

TEST(Line, EveryWordDependsOnPlaceAndVersion) {
  const Line line = Line::of(1000, 5);
  EXPECT_EQ(line, Line::of(1000, 5));
  for (const Line& other : {Line::of(1001, 5), Line::of(1000, 6), Line::of(1000, 4)}) {
    for (size_t i = 0; i < line.words.size(); ++i) EXPECT_NE(line.words[i], other.words[i]) << i;
  }
  EXPECT_EQ(std::set<uint64_t>(line.words.begin(), line.words.end()).size(), line.words.size());
}

TEST(HotSet, PutsItsShareIntoTheWindow) {
  const HotSet hot_set{1000, 100, 90};
  Random random(3);
  constexpr int kPicks = 100'000;
  for (uint64_t shifts : {0, 3, 9, 10}) {
    int hot = 0;
    for (int i = 0; i < kPicks; ++i) {
      const uint64_t line = hot_set.pick(random, shifts);
      ASSERT_LT(line, 1000u);
      if (line / 100 == hot_set.first_hot_line(shifts) / 100) ++hot;
    }
    // 90 % on purpose and a tenth of the rest by chance; five standard deviations are 0.5 %.
    EXPECT_NEAR(hot, 0.91 * kPicks, 0.005 * kPicks);
  }
}

TEST(HotSet, EachWindowHasItsTurnAndFewAreSpread) {
  for (uint64_t windows : {1, 2, 7, 10, 12, 100}) {
    const HotSet hot_set{windows * 100 + 30, 100, 90};
    std::set<uint64_t> seen;
    for (uint64_t shifts = 0; shifts < windows; ++shifts) {
      EXPECT_LE(hot_set.first_hot_line(shifts) + 100, hot_set.lines);
      seen.insert(hot_set.first_hot_line(shifts));
    }
    EXPECT_EQ(seen.size(), windows);
  }
  const HotSet hot_set{1200, 100, 90};
  int low = 0;
  for (uint64_t shifts = 0; shifts < 4; ++shifts) low += hot_set.first_hot_line(shifts) < 600;
  EXPECT_EQ(low, 2);
}

}  // namespace
}  // namespace memsluice::guest
