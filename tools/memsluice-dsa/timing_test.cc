// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/timing.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace memsluice::dsa {
namespace {

// Round numbers, so that each part of a time can be told.
const TimingConstants kConstants{.device_bytes_per_ns = 10,
                                 .all_bytes_per_ns = 1000,
                                 .descriptor_ns = 7,
                                 .latency_ns = 100,
                                 .submit_ns = 1,
                                 .engines = 2};

double ns(const std::vector<Submission>& submissions,
          const TimingConstants& constants = kConstants) {
  return model_time(submissions, constants).ns;
}

TEST(Timing, NothingTakesNoTime) {
  const ModelledTime time = model_time({}, kConstants);
  EXPECT_EQ(time.ns, 0);
  EXPECT_EQ(time.peak_ns, 0);
}

TEST(Timing, OneCopyIsSubmittedFetchedMovedAndRecorded) {
  // 1 to submit, 100 until it begins, 7 for the descriptor, 1000 for the data, 100 for the record.
  EXPECT_DOUBLE_EQ(ns({{0, 0, {10000}}}), 1208);
}

TEST(Timing, CopiesOfABatchPayForTheirDescriptorsOnly) {
  EXPECT_DOUBLE_EQ(ns({{0, 0, {10000, 10000, 10000}}}), 3 + 100 + 3 * (7 + 1000) + 100);
}

TEST(Timing, EnginesShareTheBandwidthOfTheirDevice) {
  // The second starts 1 ns later; both then move data at half the rate.
  EXPECT_NEAR(ns({{0, 0, {10000}}, {0, 0, {10000}}}), 1 + 100 + 7 + 2000 + 100, 2);
}

TEST(Timing, OneEngineTakesOneAfterAnother) {
  TimingConstants one = kConstants;
  one.engines = 1;
  EXPECT_DOUBLE_EQ(ns({{0, 0, {10000}}, {0, 1, {10000}}}, one), 1 + 2 * (100 + 7 + 1000) + 100);
}

TEST(Timing, DevicesDoNotDisturbEachOtherBelowTheBandwidthOfMemory) {
  EXPECT_NEAR(ns({{0, 0, {10000}}, {1, 0, {10000}}}), 1208, 2);
}

TEST(Timing, MemoryIsSharedByAllDevices) {
  TimingConstants narrow = kConstants;
  narrow.all_bytes_per_ns = 10;
  EXPECT_NEAR(ns({{0, 0, {10000}}, {1, 0, {10000}}}, narrow), 2208, 2);
}

TEST(Timing, QueuesTakeTurns) {
  TimingConstants one = kConstants;
  one.engines = 1;
  one.submit_ns = 0;
  one.latency_ns = 0;
  // Both orders end at the same time: what counts is that nothing is left behind.
  EXPECT_DOUBLE_EQ(ns({{0, 0, {10}}, {0, 0, {10}}, {0, 1, {10}}}, one), 3 * 8);
}

TEST(Timing, PeakIsWhatTheBandwidthOfTheUsedDevicesAllows) {
  EXPECT_DOUBLE_EQ(model_time({{0, 0, {10000}}, {3, 0, {10000}}}, kConstants).peak_ns, 1000);
  TimingConstants narrow = kConstants;
  narrow.all_bytes_per_ns = 5;
  EXPECT_DOUBLE_EQ(model_time({{0, 0, {10000}}, {3, 0, {10000}}}, narrow).peak_ns, 4000);
}

RC_GTEST_PROP(TimingProperty, NeverBelowThePeakNorAboveOneByOne, ()) {
  std::vector<Submission> submissions;
  double one_by_one_ns = 0;
  for (int i = *rc::gen::inRange(1, 40); i > 0; i--) {
    Submission submission;
    submission.device = *rc::gen::inRange(0U, 4U);
    submission.queue = *rc::gen::inRange(0U, 3U);
    for (int copy = *rc::gen::inRange(1, 10); copy > 0; copy--)
      submission.bytes.push_back(*rc::gen::inRange(uint64_t{1}, uint64_t{1} << 21));
    one_by_one_ns += ns({submission});
    submissions.push_back(std::move(submission));
  }
  const ModelledTime time = model_time(submissions, kConstants);
  RC_ASSERT(time.ns >= time.peak_ns);
  RC_ASSERT(time.ns <= one_by_one_ns + 1);
}

Json entry(uint64_t sequence, int batch_index, unsigned opcode, uint64_t size) {
  return {{"sequence", sequence},
          {"queue", 1},
          {"batch_index", batch_index},
          {"opcode", opcode},
          {"size", size}};
}

TEST(Timing, ATraceIsReadAsWhatWasSubmitted) {
  const Json one = Json::array({entry(1, 0, 3, 4096), entry(1, 1, 3, 8192), entry(1, -1, 1, 2),
                                entry(0, -1, 3, 65536), entry(2, -1, 2, 0)});
  const Json other = Json::array({entry(0, -1, 3, 512)});
  const auto submissions = submissions_of({one, other});
  ASSERT_TRUE(submissions.ok());
  ASSERT_EQ(submissions->size(), 3U);
  EXPECT_EQ((*submissions)[0].bytes, std::vector<uint64_t>{65536});
  EXPECT_EQ((*submissions)[1].device, 1U);
  EXPECT_EQ((*submissions)[2].bytes, (std::vector<uint64_t>{4096, 8192}));
  EXPECT_EQ((*submissions)[2].queue, 1U);
}

TEST(Timing, WhatIsNoTraceIsRefusedByName) {
  EXPECT_FALSE(submissions_of({Json::object()}).ok());
  EXPECT_FALSE(submissions_of({Json::array({1})}).ok());
  Json without = entry(0, -1, 3, 1);
  without.erase("queue");
  const auto refused = submissions_of({Json::array({without})});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().describe().find("queue"), std::string::npos);
  EXPECT_FALSE(submissions_of({Json::array({entry(0, -1, 3, 0)})}).ok());
}

}  // namespace
}  // namespace memsluice::dsa
