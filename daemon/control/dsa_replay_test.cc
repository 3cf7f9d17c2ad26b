// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/dsa_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "daemon/base/hand_clock.h"
#include "daemon/host/fake_dsa_devices.h"
#include "daemon/host/fake_module.h"

namespace memsluice {
namespace {

class DsaReplayTest : public testing::Test {
 protected:
  DsaReplayTest() {
    module_.add_engine("dsa", 100, {"wq0.0"});
    devices_.add("dsa0", 3, 2);
    devices_.configure(sample_dsa_configuration());
    replay_.emplace(*engines_, clock_, log_);
    devices_.forget_steps();
    clock_.now = Milliseconds(1'000'000);
  }
  // Looks, and lets what follows of it come to its end.
  void look(int times = 1) {
    for (int i = 0; i < times; i++) {
      clock_.now += Milliseconds(5000);
      replay_->look("/nowhere");
      while (engines_->busy()) ASSERT_TRUE(loop_->run_once(Milliseconds(100)).ok());
    }
  }
  void become(memsluice_queue_state state) { module_.engine_queue("wq0.0").state = state; }
  long resets() const {
    return std::count(devices_.steps().begin(), devices_.steps().end(), "reset dsa0");
  }

  FakeModule module_;
  FakeDsaDevices devices_;
  HandClock clock_;
  std::string logged_;
  Log log_{LogLevel::kInfo, [this](std::string_view line) { logged_ += line; }};
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  std::unique_ptr<Engines> engines_ = *Engines::create(module_, devices_, *loop_, log_);
  std::optional<DsaReplay> replay_;
};

TEST_F(DsaReplayTest, WhatIsUpIsLeftAlone) {
  look(5);
  become(MEMSLUICE_QUEUE_RESTING);
  look(5);
  become(MEMSLUICE_QUEUE_DRAINED);
  look(5);
  EXPECT_TRUE(devices_.steps().empty());
}

TEST_F(DsaReplayTest, AStuckDeviceIsBroughtBackAtTheSecondLook) {
  look();
  become(MEMSLUICE_QUEUE_STUCK);
  look();
  EXPECT_EQ(resets(), 0);
  look();
  EXPECT_EQ(resets(), 1);
  EXPECT_TRUE(devices_.part("wq0.0").enabled());
  EXPECT_THAT(logged_, testing::HasSubstr("dsa0: its queues are gone or stuck"));
  become(MEMSLUICE_QUEUE_UP);
  look(5);
  EXPECT_EQ(resets(), 1);
}

TEST_F(DsaReplayTest, IsTriedLessAndLessOftenInVain) {
  look();
  become(MEMSLUICE_QUEUE_STUCK);
  look(13);
  EXPECT_EQ(resets(), 1);
  look(1);
  EXPECT_EQ(resets(), 2) << "after a minute";
  look(23);
  EXPECT_EQ(resets(), 2);
  look(1);
  EXPECT_EQ(resets(), 3) << "after two";
}

TEST_F(DsaReplayTest, WhatWasNeverUpIsNobodysLoss) {
  become(MEMSLUICE_QUEUE_STUCK);
  look(5);
  EXPECT_EQ(resets(), 0);
}

TEST_F(DsaReplayTest, WithoutTheModuleNothingIsLost) {
  look();
  module_.unload();
  look(5);
  EXPECT_EQ(resets(), 0);
}

TEST_F(DsaReplayTest, AFailureIsTold) {
  look();
  become(MEMSLUICE_QUEUE_STUCK);
  devices_.fail_next("reset dsa0", EIO);
  look(2);
  EXPECT_THAT(logged_, testing::HasSubstr("dsa0 is not brought back: "));
}

TEST_F(DsaReplayTest, MayEndBeforeItsAnswer) {
  look();
  replay_->look("/nowhere");
  replay_.reset();
  while (engines_->busy()) ASSERT_TRUE(loop_->run_once(Milliseconds(100)).ok());
}

}  // namespace
}  // namespace memsluice
