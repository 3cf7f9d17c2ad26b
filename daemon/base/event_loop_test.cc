// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/event_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "daemon/base/hand_clock.h"

namespace memsluice {
namespace {

class EventLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    read_end_ = Fd(ends[0]);
    write_end_ = Fd(ends[1]);
  }
  void turn() { ASSERT_TRUE(loop_->run_once(Milliseconds(0)).ok()); }

  HandClock clock_;
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  Fd read_end_;
  Fd write_end_;
};

TEST_F(EventLoopTest, CallsBackWhileSomethingIsThere) {
  int calls = 0;
  auto watch = loop_->watch(read_end_.get(), EPOLLIN, [&](uint32_t) { calls++; });
  ASSERT_TRUE(watch.ok());
  turn();
  EXPECT_EQ(calls, 0);
  ASSERT_EQ(::write(write_end_.get(), "x", 1), 1);
  turn();
  turn();
  EXPECT_EQ(calls, 2);
  watch->set_events(0);
  turn();
  EXPECT_EQ(calls, 2);
  watch->stop();
  turn();
  EXPECT_EQ(calls, 2);
}

TEST_F(EventLoopTest, ACallbackMayEndItsOwnWatch) {
  int calls = 0;
  EventLoop::Watch watch;
  watch = *loop_->watch(read_end_.get(), EPOLLIN, [&](uint32_t) {
    watch.stop();
    calls++;
  });
  ASSERT_EQ(::write(write_end_.get(), "x", 1), 1);
  turn();
  turn();
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, TimersFireWhenDueAndNotAfterTheyAreStopped) {
  int once = 0;
  int every = 0;
  auto single = loop_->once(Milliseconds(10), [&] { once++; });
  auto repeated = loop_->every(Milliseconds(10), [&] { every++; });
  clock_.now = Milliseconds(9);
  turn();
  EXPECT_EQ(once + every, 0);
  for (int ms : {10, 20, 55}) {
    clock_.now = Milliseconds(ms);
    turn();
  }
  EXPECT_EQ(once, 1);
  EXPECT_EQ(every, 3);
  repeated.stop();
  clock_.now = Milliseconds(1000);
  turn();
  EXPECT_EQ(every, 3);
}

TEST_F(EventLoopTest, ATimerMayEndAnother) {
  EventLoop::Timer second;
  int calls = 0;
  auto first = loop_->once(Milliseconds(1), [&] { second.stop(); });
  second = loop_->once(Milliseconds(1), [&] { calls++; });
  clock_.now = Milliseconds(1);
  turn();
  EXPECT_EQ(calls, 0);
}

TEST_F(EventLoopTest, SignalsArriveInTheLoop) {
  int caught = 0;
  ASSERT_TRUE(loop_->catch_signals({SIGHUP}, [&](int signal) { caught = signal; }).ok());
  ::raise(SIGHUP);
  EXPECT_EQ(caught, 0);
  turn();
  EXPECT_EQ(caught, SIGHUP);
}

TEST_F(EventLoopTest, WatchingNothingIsAnError) {
  auto watch = loop_->watch(-1, EPOLLIN, [](uint32_t) {});
  ASSERT_FALSE(watch.ok());
  EXPECT_EQ(watch.error().message, "epoll_ctl: Bad file descriptor");
}

}  // namespace
}  // namespace memsluice
