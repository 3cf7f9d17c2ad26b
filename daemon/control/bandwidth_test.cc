// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/bandwidth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace memsluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

CountersReading reading_at(int seconds, std::vector<ChannelCounts> channels) {
  return {.time = std::chrono::seconds(seconds), .channels = std::move(channels)};
}

ChannelCounts counts(const char* name, uint64_t read_bytes, uint64_t write_bytes) {
  return {.name = name, .read_bytes = read_bytes, .write_bytes = write_bytes};
}

TEST(ChannelRates, AreBytesASecond) {
  ChannelRates rates;
  EXPECT_THAT(rates.next(reading_at(1, {counts("a", 100, 50)})), IsEmpty());
  EXPECT_THAT(rates.next(reading_at(3, {counts("a", 300, 50), counts("b", 7, 7)})),
              ElementsAre(Pair("a", ChannelRate{100, 0})));
  EXPECT_THAT(rates.next(reading_at(4, {counts("a", 300, 51), counts("b", 8, 9)})),
              ElementsAre(Pair("a", ChannelRate{0, 1}), Pair("b", ChannelRate{1, 2})));
}

TEST(ChannelRates, WhatWasMissingIsSpreadOverTheTime) {
  ChannelRates rates;
  rates.next(reading_at(1, {counts("a", 100, 0)}));
  EXPECT_THAT(rates.next(reading_at(2, {})), IsEmpty()) << "missing is not zero";
  EXPECT_THAT(rates.next(reading_at(5, {counts("a", 500, 0)})),
              ElementsAre(Pair("a", ChannelRate{100, 0})));
}

TEST(ChannelRates, SayNothingOfWhatBeganAnewOrWasNotReadAgain) {
  ChannelRates rates;
  rates.next(reading_at(1, {counts("a", 100, 100)}));
  EXPECT_THAT(rates.next(reading_at(2, {counts("a", 100, 99)})), IsEmpty());
  EXPECT_THAT(rates.next(reading_at(3, {counts("a", 110, 100)})),
              ElementsAre(Pair("a", ChannelRate{10, 1})));
  EXPECT_THAT(rates.next(reading_at(3, {counts("a", 110, 100)})), IsEmpty());
  EXPECT_THAT(rates.next(reading_at(2, {counts("a", 120, 100)})), IsEmpty()) << "back in time";
}

class HandTurnedClock : public Clock {
 public:
  Milliseconds monotonic() const override { return now; }
  int64_t unix_s() const override { return 0; }
  Milliseconds now{0};
};

// Says what it is given, or waits until it may.
class ScriptedCounters : public ChannelCounters {
 public:
  struct Script {
    std::mutex lock;
    Result<CountersReading> next = CountersReading{};
    std::atomic<bool> hold = false;
  };
  explicit ScriptedCounters(Script& script) : script_(script) {}
  Result<CountersReading> read() override {
    while (script_.hold) std::this_thread::yield();
    const std::lock_guard guard(script_.lock);
    return script_.next;
  }

 private:
  Script& script_;
};

class BandwidthTest : public testing::Test {
 protected:
  void say(Result<CountersReading> reading) {
    const std::lock_guard guard(script_.lock);
    script_.next = std::move(reading);
  }
  void turn(int milliseconds = 10) {
    ASSERT_TRUE(loop_->run_once(Milliseconds(milliseconds)).ok());
  }
  void until_read() {
    while (bandwidth_->busy()) turn();
  }
  void second() {
    clock_.now += Bandwidth::kPeriod;
    turn(0);
  }

  ScriptedCounters::Script script_;
  HandTurnedClock clock_;
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  std::string logged_;
  Log log_{LogLevel::kInfo, [this](std::string_view line) { logged_ += line; }};
  int made_ = 0;
  std::unique_ptr<Bandwidth> bandwidth_ = *Bandwidth::create(
      *loop_, log_, [this](const CounterSettings& settings) -> std::unique_ptr<ChannelCounters> {
        made_++;
        if (settings.source == "none") return nullptr;
        return std::make_unique<ScriptedCounters>(script_);
      });
};

TEST_F(BandwidthTest, KeepsASampleASecondAndMarksThoseThatAreMissing) {
  say(reading_at(1, {counts("a", 0, 0)}));
  bandwidth_->configure({});
  until_read();
  say(reading_at(2, {counts("a", 64, 0)}));
  second();
  until_read();
  say(Error{.code = ErrorCode::kFailed, .object = "socket", .message = "nobody listens"});
  second();
  until_read();
  EXPECT_FALSE(bandwidth_->reading().ok());
  EXPECT_THAT(logged_, HasSubstr("<4>bandwidth of channels: socket: nobody listens"));
  say(reading_at(4, {counts("a", 64 + 256, 0)}));
  script_.hold = true;
  second();
  second();
  script_.hold = false;
  until_read();
  EXPECT_THAT(bandwidth_->samples(),
              ElementsAre(IsEmpty(), ElementsAre(Pair("a", ChannelRate{64, 0})), IsEmpty(),
                          IsEmpty(), ElementsAre(Pair("a", ChannelRate{128, 0}))));
  EXPECT_THAT(logged_, HasSubstr("all are counted"));
  for (size_t i = 0; i < Bandwidth::kSamplesMax + 5; i++) {
    second();
    until_read();
  }
  EXPECT_EQ(bandwidth_->samples().size(), Bandwidth::kSamplesMax);
}

TEST_F(BandwidthTest, BeginsAnewWithOtherSettings) {
  say(reading_at(1, {counts("a", 0, 0)}));
  bandwidth_->configure({});
  until_read();
  bandwidth_->configure({});
  EXPECT_EQ(made_, 1);
  script_.hold = true;
  second();
  bandwidth_->configure({.source = "none"});
  script_.hold = false;
  until_read();
  EXPECT_THAT(bandwidth_->samples(), IsEmpty()) << "the old source's answer comes too late";
  EXPECT_THAT(bandwidth_->reading().error().describe(), HasSubstr("are switched off"));
  second();
  EXPECT_FALSE(bandwidth_->busy());
}

TEST_F(BandwidthTest, AHostWithoutCountersIsNoFault) {
  say(Error{.code = ErrorCode::kUnavailable, .object = "x", .message = "there is no PMU"});
  bandwidth_->configure({});
  until_read();
  second();
  until_read();
  EXPECT_EQ(logged_, "<6>bandwidth of channels: x: there is no PMU\n") << "once";
}

}  // namespace
}  // namespace memsluice
