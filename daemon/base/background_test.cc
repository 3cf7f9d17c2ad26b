// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/background.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace memsluice {
namespace {

class BackgroundTest : public testing::Test {
 protected:
  void turn_until(const std::function<bool()>& holds) {
    for (int i = 0; i < 100 && !holds(); i++) ASSERT_TRUE(loop_->run_once(Milliseconds(100)).ok());
    EXPECT_TRUE(holds());
  }

  SystemClock clock_;
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  std::unique_ptr<Background> background_ = *Background::create(*loop_);
};

TEST_F(BackgroundTest, WorksElsewhereAndTellsHere) {
  std::thread::id worked;
  std::optional<int> told;
  auto started = background_->run<int>(
      [&]() -> Result<int> {
        worked = std::this_thread::get_id();
        return 7;
      },
      [&](const Result<int>& result) { told = *result; });
  ASSERT_TRUE(started.ok());
  turn_until([&] { return told.has_value(); });
  EXPECT_EQ(told, 7);
  EXPECT_NE(worked, std::this_thread::get_id());
  EXPECT_EQ(background_->running(), 0u);
}

TEST_F(BackgroundTest, TheLoopGoesOnMeanwhileAndOnlySoManyRun) {
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  std::vector<ErrorCode> told;
  auto start = [&] {
    return background_->run<void>(
        [released]() -> Result<void> {
          released.wait();
          return Error{.code = ErrorCode::kDenied};
        },
        [&](const Result<void>& result) { told.push_back(result.error().code); });
  };
  for (size_t i = 0; i < Background::kRunningMax; i++) ASSERT_TRUE(start().ok());
  EXPECT_EQ(start().error().code, ErrorCode::kConflict);
  int turns = 0;
  auto timer = loop_->every(Milliseconds(1), [&] { turns++; });
  turn_until([&] { return turns > 2; });
  EXPECT_TRUE(told.empty());
  release.set_value();
  turn_until([&] { return told.size() == Background::kRunningMax; });
  EXPECT_EQ(told.front(), ErrorCode::kDenied);
  EXPECT_TRUE(start().ok());
}

TEST_F(BackgroundTest, ItsEndWaitsForTheWorkAndTellsNothing) {
  std::atomic<bool> worked = false;
  bool told = false;
  auto started = background_->run<void>(
      [&]() -> Result<void> {
        std::this_thread::sleep_for(Milliseconds(20));
        worked = true;
        return {};
      },
      [&](const Result<void>&) { told = true; });
  ASSERT_TRUE(started.ok());
  background_.reset();
  EXPECT_TRUE(worked);
  ASSERT_TRUE(loop_->run_once(Milliseconds(0)).ok());
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace memsluice
