// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/traffic/channel_model.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

namespace memsluice::traffic {
namespace {

constexpr uint64_t kMicrosecondPs = 1'000'000;

// Time passes only by spinning, 30 ns a turn.
struct FakeClock {
  uint64_t now = 0;

  uint64_t now_ps() const { return now; }
  void relax() { now += 30 * kPicosecondsPerNanosecond; }
};

// The grain of payments: what may be owed at the end, and given back at the start.
constexpr uint64_t kGrainPs = Delay<FakeClock>::kPayAtPs;

TEST(Channel, ServesInOrderOfArrival) {
  std::atomic<uint64_t> next_free = 0;
  std::mt19937_64 random(1);
  uint64_t arrival = 0, expected = 0;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t service = random() % 10'000;
    arrival += random() % 10'000;
    expected = std::max(arrival, expected) + service;
    ASSERT_EQ(occupy_channel(next_free, arrival, service), expected);
  }
}

TEST(Channel, ServesNoFasterThanItsRateWhenThreadsShareIt) {
  std::atomic<uint64_t> next_free = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50'000; ++i) occupy_channel(next_free, 1000, 7);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(next_free, 1000 + 3 * 50'000 * 7);
}

TEST(Channel, TakesNoScribbleForAQueue) {
  std::atomic<uint64_t> next_free = UINT64_MAX;
  EXPECT_EQ(occupy_channel(next_free, 1000, 7), 1000 + kMaxBacklogPs + 7);
}

TEST(Channel, ServiceTimeKeepsFractionsOfANanosecond) {
  EXPECT_EQ(service_time_ps(64, 38'400'000'000), 1666u);
  EXPECT_EQ(service_time_ps(64, kMinBytesPerSecond), 64 * kMicrosecondPs);
}

class DelayTest : public testing::Test {
 protected:
  FakeClock clock_;
  Delay<FakeClock> delay_{clock_};
};

TEST_F(DelayTest, SmallLatenciesAddUpExactly) {
  for (int i = 1; i <= 10'000; ++i) {
    EXPECT_EQ(delay_.read(nullptr, 0, 170'500), 170'500u);
    ASSERT_LT(clock_.now, i * 170'500u + kGrainPs);
    ASSERT_GT(clock_.now + kGrainPs, i * 170'500u);
  }
}

TEST_F(DelayTest, GivesBackAnOvershootUpToTheGrain) {
  // The host takes the core away for a second.
  struct Preempted : FakeClock {
    void relax() { now += kPicosecondsPerSecond; }
  } clock;
  Delay<Preempted> delay(clock);
  delay.read(nullptr, 0, kGrainPs);
  const uint64_t after = clock.now;
  delay.read(nullptr, 0, 2 * kGrainPs - 1);
  EXPECT_EQ(clock.now, after) << "the grain was given back, the rest is still too small to pay";
  delay.read(nullptr, 0, 1);
  EXPECT_GT(clock.now, after);
}

TEST_F(DelayTest, ReadsTakeTheirServiceTimeAndLatency) {
  std::atomic<uint64_t> channel = 0;
  EXPECT_EQ(delay_.read(&channel, 300, 1000), 1300u);
  EXPECT_EQ(delay_.read(&channel, 300, 1000), 1300u) << "nobody else uses the channel";
}

TEST_F(DelayTest, SharingAChannelHalvesItsService) {
  constexpr uint64_t kService = 5 * kMicrosecondPs;  // long, so that every read is paid at once
  std::atomic<uint64_t> channel = 0;
  FakeClock other_clock;
  Delay<FakeClock> other(other_clock);
  for (int i = 0; i < 1000; ++i) {
    delay_.read(&channel, kService, 0);
    other.read(&channel, kService, 0);
  }
  EXPECT_GE(std::max(clock_.now, other_clock.now) + kGrainPs, 2000 * kService);
}

TEST_F(DelayTest, WritesWaitOnlyForRoomInTheQueue) {
  constexpr uint64_t kService = 1000, kQueue = Delay<FakeClock>::kWriteQueueLines;
  std::atomic<uint64_t> channel = 0;
  for (uint64_t i = 0; i < kQueue; ++i) EXPECT_EQ(delay_.write_back(&channel, kService), 0u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(delay_.write_back(&channel, kService), kService);
  EXPECT_EQ(delay_.read(&channel, kService, 0), (kQueue + 1) * kService) << "reads queue behind";
}

TEST_F(DelayTest, WithoutSettingsTimeStandsStill) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(delay_.read(nullptr, 0, 0) + delay_.write_back(nullptr, 0), 0u);
  }
  EXPECT_EQ(clock_.now, 0u);
}

}  // namespace
}  // namespace memsluice::traffic
