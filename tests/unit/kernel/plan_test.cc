// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/unit/kernel/plan_check.h"

namespace memsluice::test {
namespace {

constexpr uint32_t kHuge = 512 * kPage;
constexpr uint32_t kAlone = 16 * kPage;
constexpr memsluice_plan_queue kQueue = {.max_transfer_bytes = kHuge, .max_batch = 128};

std::vector<memsluice_plan_queue> queues(size_t count, memsluice_plan_queue queue = kQueue) {
  return std::vector<memsluice_plan_queue>(count, queue);
}

std::vector<uint32_t> folios(size_t base, size_t huge) {
  std::vector<uint32_t> sizes(huge, kHuge);
  sizes.insert(sizes.end(), base, kPage);
  return sizes;
}

size_t descriptors(const PlannedQueue& queue) {
  return queue.alone.size() + queue.groups.size();
}

TEST(CopyPlan, SplitsAHugePageOverAllQueues) {
  const Planned planned = plan(queues(8), {kHuge}, kAlone);
  for (const PlannedQueue& queue : planned.queues) {
    ASSERT_EQ(queue.alone.size(), 1U);
    EXPECT_EQ(queue.alone[0].bytes, kHuge / 8);
    EXPECT_TRUE(queue.groups.empty());
  }
}

TEST(CopyPlan, GroupsBasePages) {
  const Planned planned = plan(queues(8), folios(1024, 0), kAlone);
  for (const PlannedQueue& queue : planned.queues) {
    ASSERT_EQ(queue.groups.size(), 1U);
    EXPECT_EQ(queue.groups[0].size(), 128U);
    EXPECT_TRUE(queue.alone.empty());
  }
}

TEST(CopyPlan, SpreadsAFewPages) {
  const Planned planned = plan(queues(8), folios(3, 0), kAlone);
  for (size_t i = 0; i < 8; i++) EXPECT_EQ(planned.queues[i].bytes, i < 3 ? kPage : 0U) << i;
}

// Defect A: 24 huge pages and 9 to 15 base pages ran out of descriptors for eight queues.
TEST(CopyPlan, TakesABasePageMoreThanThereAreQueues) {
  for (size_t base = 8; base <= 17; base++) {
    const auto sizes = folios(base, 24);
    const Planned planned = plan(queues(8), sizes, kAlone);
    EXPECT_EQ(what_is_wrong(planned, queues(8), sizes, kAlone), "") << base;
    for (const PlannedQueue& queue : planned.queues) EXPECT_LE(descriptors(queue), 24 + 1U) << base;
  }
}

// Defect B: with fewer queues than eight, a batch was larger than its list.
TEST(CopyPlan, ClosesAGroupThatIsFull) {
  const Planned planned = plan(queues(3), folios(1000, 0), kAlone);
  for (size_t i = 0; i < 3; i++) {
    const auto& groups = planned.queues[i].groups;
    ASSERT_EQ(groups.size(), 3U);
    EXPECT_EQ(groups[0].size(), 128U);
    EXPECT_EQ(groups[2].size(), i == 0 ? 334 - 256U : 333 - 256U);
  }
}

// Defect C: the rest of a huge page that the queues do not divide was not copied.
TEST(CopyPlan, LeavesNoRemainder) {
  for (const size_t count : {3, 5, 6, 7, 63, 64}) {
    const auto sizes = folios(0, 24);
    const Planned planned = plan(queues(count), sizes, kAlone);
    EXPECT_EQ(what_is_wrong(planned, queues(count), sizes, kAlone), "") << count;
  }
}

// Defect H: a queue's batches may be smaller than the device's, and 32 if nobody has set them.
TEST(CopyPlan, KeepsToTheLimitsOfEachQueue) {
  const std::vector<memsluice_plan_queue> different = {
      {kHuge, 32}, {kPage, 1}, {2 * kPage, 0}, {kHuge, 2}};
  const auto sizes = folios(300, 3);
  const Planned planned = plan(different, sizes, kAlone);
  EXPECT_EQ(what_is_wrong(planned, different, sizes, kAlone), "");
  EXPECT_TRUE(planned.queues[1].groups.empty());
  EXPECT_TRUE(planned.queues[2].groups.empty());
  for (const auto& group : planned.queues[3].groups) EXPECT_LE(group.size(), 2U);
}

// The paper's lists: A is one huge page among 1023 base pages, B is 24 among 1000.
TEST(CopyPlan, NeedsFewDescriptorsForTheMixedLists) {
  for (const auto& [base, huge] : {std::pair<size_t, size_t>{1023, 1}, {1000, 24}}) {
    const Planned planned = plan(queues(8), folios(base, huge), kAlone);
    size_t all = 0;
    for (const PlannedQueue& queue : planned.queues) all += descriptors(queue);
    EXPECT_EQ(all, 8 * (huge + 1));
  }
}

TEST(CopyPlan, GoesOnWhereTheLastFolioEnded) {
  const Planned planned = plan(queues(4), {3 * kPage, 3 * kPage}, kAlone);
  std::vector<uint64_t> bytes;
  for (const PlannedQueue& queue : planned.queues) bytes.push_back(queue.bytes / kPage);
  EXPECT_EQ(bytes, (std::vector<uint64_t>{2, 2, 1, 1}));
}

TEST(CopyPlan, OfNothingIsNothing) {
  const Planned planned = plan(queues(4), {}, kAlone);
  EXPECT_EQ(planned.calls, 0U);
}

RC_GTEST_PROP(CopyPlan, KeepsItsPromises, ()) {
  const auto limits = *rc::gen::resize(
      64, rc::gen::nonEmpty(rc::gen::container<std::vector<memsluice_plan_queue>>(rc::gen::apply(
              [](uint32_t transfer_pages, uint32_t batch) {
                return memsluice_plan_queue{transfer_pages * kPage, batch};
              },
              rc::gen::oneOf(rc::gen::inRange<uint32_t>(1, 9), rc::gen::just(512U)),
              rc::gen::oneOf(rc::gen::inRange<uint32_t>(0, 5), rc::gen::just(128U))))));
  RC_PRE(limits.size() <= MEMSLUICE_PLAN_QUEUES_MAX);
  // Every size that a folio may have, and those that it may not.
  const auto pages = *rc::gen::container<std::vector<uint32_t>>(
      rc::gen::oneOf(rc::gen::just(1U), rc::gen::just(512U), rc::gen::inRange<uint32_t>(1, 70),
                     rc::gen::map(rc::gen::inRange(0, 11), [](int order) { return 1U << order; })));
  std::vector<uint32_t> sizes;
  for (const uint32_t count : pages) sizes.push_back(count * kPage);
  const uint32_t alone_bytes = *rc::gen::element(0U, kPage, kAlone, kHuge, UINT32_MAX);
  const Planned planned = plan(limits, sizes, alone_bytes);
  RC_ASSERT(what_is_wrong(planned, limits, sizes, alone_bytes) == "");
}

// The check itself has to see what a wrong plan would do.
TEST(CopyPlan, IsCheckedForWhatMayBeWrong) {
  const auto limits = queues(2);
  const std::vector<uint32_t> sizes = {2 * kPage, kHuge};
  const Planned good = plan(limits, sizes, kAlone);
  ASSERT_EQ(what_is_wrong(good, limits, sizes, kAlone), "");
  Planned bad = good;
  bad.queues[0].alone.pop_back();
  EXPECT_EQ(what_is_wrong(bad, limits, sizes, kAlone), "a byte is not copied exactly once");
  bad = good;
  bad.queues[1].groups.push_back(bad.queues[1].groups[0]);
  EXPECT_NE(what_is_wrong(bad, limits, sizes, kAlone), "");
  bad = good;
  bad.queues[0].alone[0].bytes += kPage;
  EXPECT_NE(what_is_wrong(bad, limits, sizes, kAlone), "");
  bad = good;
  bad.queues[0].open = bad.queues[0].groups[0];
  EXPECT_EQ(what_is_wrong(bad, limits, sizes, kAlone), "queue 0: a group is left open");
  bad = good;
  bad.widest_gap_bytes = 2 * kPage;
  EXPECT_EQ(what_is_wrong(bad, limits, sizes, kAlone), "queues are more than a page apart");
  bad = good;
  bad.calls = 100000;
  EXPECT_EQ(what_is_wrong(bad, limits, sizes, kAlone), "too many calls");
}

}  // namespace
}  // namespace memsluice::test
