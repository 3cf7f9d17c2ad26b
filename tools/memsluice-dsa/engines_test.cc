// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/engines.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <vector>

namespace memsluice::dsa {
namespace {

Descriptor numbered(uint64_t number) {
  Descriptor descriptor = {};
  descriptor.src_addr = number;
  return descriptor;
}

// Engines that note what they do, and stop inside a job until it is let through.
class EnginesTest : public testing::Test {
 protected:
  void start(unsigned engines, unsigned queues) {
    engines_.emplace(engines, queues, [this](const Job& job) { work(job); });
    for (unsigned i = 0; i < engines; i++) engines_->set_group(i, 0);
  }

  void work(const Job& job) {
    std::unique_lock lock(mutex_);
    begun_.push_back({job.queue, job.descriptor.src_addr});
    changed_.notify_all();
    changed_.wait(lock, [&] { return !closed_ || let_through_.count(job.descriptor.src_addr); });
    const bool wanted = engines_->is_wanted(job);
    (wanted ? ended_ : unwanted_).push_back(job.descriptor.src_addr);
  }

  void wait_until_begun(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.size() >= count; });
  }
  void close_gate() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  void let_through(uint64_t number) {
    const std::lock_guard lock(mutex_);
    let_through_[number] = true;
    changed_.notify_all();
  }
  void open_gate() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  std::map<uint64_t, bool> let_through_;
  std::vector<std::pair<unsigned, uint64_t>> begun_;
  std::vector<uint64_t> ended_, unwanted_;
  std::optional<Engines> engines_;  // last: its threads use what is above
};

TEST_F(EnginesTest, ExecuteWhatAQueueAcceptsInOrder) {
  start(1, 1);
  engines_->open(0, 8, 0, 1);
  for (uint64_t i = 0; i < 8; i++)
    EXPECT_EQ(engines_->submit(0, numbered(i)), Engines::Accepted::kYes);
  EXPECT_TRUE(engines_->drain(1));
  EXPECT_EQ(ended_, (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(EnginesTest, RefuseWhatAClosedOrFullQueueCannotTake) {
  close_gate();
  start(1, 2);
  EXPECT_EQ(engines_->submit(0, numbered(0)), Engines::Accepted::kClosed);
  engines_->open(0, 2, 0, 1);
  engines_->submit(0, numbered(0));
  wait_until_begun(1);
  // An engine has the first: two more wait.
  EXPECT_EQ(engines_->submit(0, numbered(1)), Engines::Accepted::kYes);
  EXPECT_EQ(engines_->submit(0, numbered(2)), Engines::Accepted::kYes);
  EXPECT_EQ(engines_->waiting(0), 2U);
  EXPECT_EQ(engines_->running(), 1U);
  EXPECT_EQ(engines_->submit(0, numbered(3)), Engines::Accepted::kFull);
  engines_->close(1);
  EXPECT_EQ(engines_->submit(0, numbered(4)), Engines::Accepted::kClosed);
  open_gate();
  EXPECT_TRUE(engines_->drain(1));
  EXPECT_EQ(ended_, (std::vector<uint64_t>{0, 1, 2}));
}

TEST_F(EnginesTest, EndJobsOutOfOrder) {
  close_gate();
  start(2, 1);
  engines_->open(0, 8, 0, 1);
  engines_->submit(0, numbered(1));
  engines_->submit(0, numbered(2));
  wait_until_begun(2);
  let_through(2);
  while (engines_->running() == 2) std::this_thread::yield();
  let_through(1);
  EXPECT_TRUE(engines_->drain(1));
  EXPECT_EQ(ended_, (std::vector<uint64_t>{2, 1}));
}

TEST_F(EnginesTest, ServeTheirOwnGroupOnly) {
  start(2, 2);
  engines_->set_group(0, 0);
  engines_->set_group(1, Engines::kNoGroup);
  engines_->open(0, 8, 0, 1);
  engines_->open(1, 8, 1, 1);
  engines_->submit(1, numbered(10));
  engines_->submit(0, numbered(1));
  EXPECT_TRUE(engines_->drain(1));
  EXPECT_EQ(engines_->waiting(1), 1U);
  engines_->set_group(1, 1);
  EXPECT_TRUE(engines_->drain(2));
  EXPECT_EQ(ended_, (std::vector<uint64_t>{1, 10}));
}

TEST_F(EnginesTest, WeighQueuesByPriority) {
  close_gate();
  start(1, 3);
  engines_->open(2, 1, 0, 1);
  engines_->submit(2, numbered(100));
  wait_until_begun(1);  // what follows is there before the first choice
  engines_->open(0, 40, 0, 3);
  engines_->open(1, 40, 0, 1);
  for (uint64_t i = 0; i < 40; i++) {
    engines_->submit(0, numbered(i));
    engines_->submit(1, numbered(i));
  }
  open_gate();
  EXPECT_TRUE(engines_->drain(7));
  unsigned first = 0;
  for (size_t i = 1; i <= 40; i++) first += begun_[i].first == 0;
  EXPECT_EQ(first, 30U);
}

TEST_F(EnginesTest, DrainWaitsForWhatWasThereBefore) {
  close_gate();
  start(1, 1);
  engines_->open(0, 8, 0, 1);
  engines_->submit(0, numbered(1));
  wait_until_begun(1);
  auto drained = std::async(std::launch::async, [&] { return engines_->drain(1); });
  EXPECT_EQ(drained.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  open_gate();
  EXPECT_TRUE(drained.get());
  EXPECT_TRUE(engines_->drain(1));  // nothing is left to wait for
}

TEST_F(EnginesTest, DropWhatWaits) {
  close_gate();
  start(1, 1);
  engines_->open(0, 8, 0, 1);
  for (uint64_t i = 0; i < 4; i++) engines_->submit(0, numbered(i));
  wait_until_begun(1);
  engines_->drop_waiting(1);
  open_gate();
  EXPECT_TRUE(engines_->drain(1));
  EXPECT_EQ(ended_, (std::vector<uint64_t>{0}));
}

TEST_F(EnginesTest, AResetEndsDrainsAndWaitsForWhatRuns) {
  close_gate();
  start(1, 1);
  engines_->open(0, 8, 0, 1);
  engines_->submit(0, numbered(1));
  engines_->submit(0, numbered(2));
  wait_until_begun(1);
  auto drained = std::async(std::launch::async, [&] { return engines_->drain(1); });
  EXPECT_EQ(drained.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  auto reset = std::async(std::launch::async, [&] { engines_->reset(); });
  EXPECT_FALSE(drained.get());
  EXPECT_EQ(reset.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  open_gate();
  reset.get();
  EXPECT_EQ(engines_->running(), 0U);
  EXPECT_EQ(unwanted_, (std::vector<uint64_t>{1}));
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(engines_->submit(0, numbered(3)), Engines::Accepted::kClosed);
}

TEST_F(EnginesTest, AHeldEngineTakesNothing) {
  start(1, 1);
  engines_->open(0, 8, 0, 1);
  engines_->hold(0, true);
  EXPECT_TRUE(engines_->is_held(0));
  engines_->submit(0, numbered(1));
  EXPECT_EQ(engines_->waiting(0), 1U);
  engines_->hold(0, false);
  EXPECT_TRUE(engines_->drain(1));
  EXPECT_EQ(ended_, (std::vector<uint64_t>{1}));
}

TEST(Engines, WaitsEndWithAReset) {
  std::promise<bool> held, delayed;
  std::promise<void> began_first, began_second;
  Engines* self = nullptr;
  Engines engines(2, 1, [&](const Job& job) {
    if (job.descriptor.src_addr == 1) {
      self->hold(job.engine, true);
      began_first.set_value();
      held.set_value(self->wait_while_held(job));
    } else {
      began_second.set_value();
      delayed.set_value(self->wait(job, std::chrono::hours(1)));
    }
  });
  self = &engines;
  for (unsigned i = 0; i < 2; i++) engines.set_group(i, 0);
  engines.open(0, 8, 0, 1);
  engines.submit(0, numbered(1));
  engines.submit(0, numbered(2));
  began_first.get_future().get();
  began_second.get_future().get();
  engines.reset();
  EXPECT_FALSE(held.get_future().get());
  EXPECT_FALSE(delayed.get_future().get());
  EXPECT_FALSE(engines.is_held(0) || engines.is_held(1));
}

TEST(Engines, AJobMayWaitForThoseBeforeIt) {
  std::promise<void> first_may_end;
  std::atomic<bool> first_ended = false;
  std::promise<bool> saw_it_ended;
  Engines* self = nullptr;
  Engines engines(2, 1, [&](const Job& job) {
    if (job.descriptor.src_addr == 1) {
      first_may_end.get_future().get();
      first_ended = true;
    } else {
      const bool wanted = self->wait_for_earlier(job);
      saw_it_ended.set_value(wanted && first_ended);
    }
  });
  self = &engines;
  for (unsigned i = 0; i < 2; i++) engines.set_group(i, 0);
  engines.open(0, 8, 0, 1);
  engines.submit(0, numbered(1));
  engines.submit(0, numbered(2));
  auto saw = saw_it_ended.get_future();
  EXPECT_EQ(saw.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  first_may_end.set_value();
  EXPECT_TRUE(saw.get());
}

}  // namespace
}  // namespace memsluice::dsa
