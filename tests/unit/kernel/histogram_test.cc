// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <random>

extern "C" {
#include "kernel/hotness/histogram.h"
}

namespace {

TEST(Histogram, BinIsTheLogarithmOfTheCountPlusOne) {
  EXPECT_EQ(memsluice_bin(0), 0U);
  EXPECT_EQ(memsluice_bin(1), 1U);
  EXPECT_EQ(memsluice_bin(2), 1U);
  EXPECT_EQ(memsluice_bin(3), 2U);
  for (u32 bin = 1; bin < MEMSLUICE_BINS - 1; bin++) {
    EXPECT_EQ(memsluice_bin((1U << bin) - 1), bin);
    EXPECT_EQ(memsluice_bin((2U << bin) - 2), bin);
  }
  EXPECT_EQ(memsluice_bin(MEMSLUICE_COUNT_MAX), MEMSLUICE_BINS - 1U);
}

TEST(Histogram, ObservationsSaturateAndCoolingForgets) {
  u32 count = 0;
  for (int i = 0; i < 1000; i++) {
    u32 next = memsluice_count_observe(count);
    EXPECT_GE(next, count);
    EXPECT_LE(next, MEMSLUICE_COUNT_MAX);
    count = next;
  }
  EXPECT_EQ(count, MEMSLUICE_COUNT_MAX);
  EXPECT_EQ(memsluice_count_cool(count, 1), count / 2);
  EXPECT_EQ(memsluice_count_cool(MEMSLUICE_OBSERVATION, 10), 0U);
  EXPECT_EQ(memsluice_count_cool(count, 32), 0U);
  EXPECT_EQ(memsluice_count_cool(count, ~0U), 0U);
  EXPECT_EQ(memsluice_count_cool(count, 0), count);
}

// However a page is accessed, more often means a bin that is not lower.
TEST(Histogram, MoreOftenIsNeverColder) {
  std::mt19937 random(1);
  for (int run = 0; run < 200; run++) {
    u32 rare = 0, often = 0;
    for (int scan = 0; scan < 100; scan++) {
      bool accessed = random() % 4 == 0;
      if (accessed) rare = memsluice_count_observe(rare);
      if (accessed || random() % 4 == 0) often = memsluice_count_observe(often);
      if (scan % 8 == 7) {
        rare = memsluice_count_cool(rare, 1);
        often = memsluice_count_cool(often, 1);
      }
      ASSERT_GE(memsluice_bin(often), memsluice_bin(rare));
    }
  }
}

TEST(Histogram, AHugePageWeighsAsManyPagesAsItHas) {
  memsluice_histogram histogram = {};
  memsluice_histogram_add(&histogram, 511, 512);
  memsluice_histogram_add(&histogram, 511, 1);
  memsluice_histogram_add(&histogram, 0, 7);
  EXPECT_EQ(histogram.pages[9], 513U);
  EXPECT_EQ(memsluice_histogram_pages(&histogram), 520U);
  EXPECT_EQ(memsluice_histogram_between(&histogram, 1, 15), 513U);
  EXPECT_EQ(memsluice_histogram_between(&histogram, 1, 8), 0U);
  EXPECT_EQ(memsluice_histogram_between(&histogram, 9, 3), 0U);
  EXPECT_EQ(memsluice_histogram_between(&histogram, 0, 1000), 520U);
}

TEST(Histogram, MovingKeepsEveryPageInItsBin) {
  std::mt19937_64 random(2);
  for (int run = 0; run < 500; run++) {
    memsluice_histogram from = {}, to = {}, sum = {};
    for (u32 bin = 0; bin < MEMSLUICE_BINS; bin++) {
      from.pages[bin] = random() % 3 ? random() % 1000 : 0;
      to.pages[bin] = random() % 1000;
      sum.pages[bin] = from.pages[bin] + to.pages[bin];
    }
    u64 before = memsluice_histogram_pages(&from), pages = random() % 20000;
    bool hottest_first = random() % 2;
    auto old = from;
    memsluice_histogram_move(&from, &to, pages, hottest_first);
    EXPECT_EQ(before - memsluice_histogram_pages(&from), std::min(before, pages));
    bool partial = false;
    for (u32 i = 0; i < MEMSLUICE_BINS; i++) {
      u32 bin = hottest_first ? MEMSLUICE_BINS - 1 - i : i;
      EXPECT_EQ(from.pages[bin] + to.pages[bin], sum.pages[bin]);
      // Behind a bin that was not emptied nothing has been touched.
      if (partial) {
        EXPECT_EQ(from.pages[bin], old.pages[bin]);
      }
      partial |= from.pages[bin] != 0;
    }
  }
}

}  // namespace
