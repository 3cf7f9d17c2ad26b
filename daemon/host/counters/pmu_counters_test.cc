// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/counters/pmu_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <tuple>

#include "daemon/host/counters/monotonic.h"
#include "daemon/host/counters/recorded_pmus.h"
#include "daemon/host/files.h"

namespace memsluice {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kReads = 0xcf05;
constexpr uint64_t kWrites = 0xf005;

// The kernel's side: counters by type, CPU and config, and how often each has been opened.
class FakePerf {
 public:
  using Key = std::tuple<uint32_t, int, uint64_t>;

  OpenPerfEvent opener() {
    return [this](const PerfEvent& event) -> Result<std::unique_ptr<PerfCounter>> {
      if (refuse_with != 0) return errno_error(refuse_with, "perf_event_open", "CPU");
      const Key key{event.type, event.cpu, event.config[0]};
      opened[key]++;
      values[key] = {};
      return std::unique_ptr<PerfCounter>(std::make_unique<Counter>(*this, key));
    };
  }
  void advance(uint32_t type, int cpu, uint64_t config, uint64_t lines, double running = 1) {
    CounterValue& value = values[{type, cpu, config}];
    value.count += lines;
    value.enabled_ns += kSecond;
    value.running_ns += static_cast<uint64_t>(running * static_cast<double>(kSecond));
  }
  // Both counters of a box.
  void advance_box(uint32_t type, int cpu, uint64_t read_lines, uint64_t write_lines) {
    advance(type, cpu, kReads, read_lines);
    advance(type, cpu, kWrites, write_lines);
  }

  std::map<Key, CounterValue> values;
  std::map<Key, int> opened;
  std::map<Key, int> fail_reading;
  int refuse_with = 0;

 private:
  class Counter : public PerfCounter {
   public:
    Counter(FakePerf& perf, Key key) : perf_(perf), key_(std::move(key)) {}
    Result<CounterValue> read() override {
      if (perf_.fail_reading[key_] > 0) {
        perf_.fail_reading[key_]--;
        return Error{.object = "counter", .message = "the kernel has stopped it"};
      }
      return perf_.values.at(key_);
    }

   private:
    FakePerf& perf_;
    Key key_;
  };
};

// Two sockets with two channels each.
class PmuCountersTest : public testing::Test {
 protected:
  PmuCountersTest() {
    for (const int cpu : {0, 1, 2, 3}) host_.cpu(cpu, 0);
    for (const int cpu : {4, 5, 6, 7}) host_.cpu(cpu, 1);
    host_.nodes({"0-3", "4-7"});
    host_.sapphire_rapids_imc(0, 70, "0,4");
    host_.sapphire_rapids_imc(1, 71, "0,4");
  }

  PmuCounters counters(CounterSettings settings = {}) {
    return PmuCounters(std::move(settings), host_.paths(), perf_.opener());
  }
  static ChannelCounts channel(const CountersReading& reading, const std::string& name) {
    for (const ChannelCounts& counts : reading.channels)
      if (counts.name == name) return counts;
    ADD_FAILURE() << name << " is not there";
    return {};
  }
  static std::vector<std::string> names(const Result<CountersReading>& reading) {
    std::vector<std::string> list;
    if (!reading.ok()) return {reading.error().describe()};
    for (const ChannelCounts& counts : reading->channels) list.push_back(counts.name);
    return list;
  }
  void second_for_all() {
    for (const uint32_t type : {70u, 71u})
      for (const int cpu : {0, 4}) perf_.advance_box(type, cpu, type, 1);
  }

  RecordedPmus host_;
  FakePerf perf_;
};

TEST_F(PmuCountersTest, CountBytesOfEachChannel) {
  auto counted = counters();
  auto first = counted.read();
  EXPECT_THAT(first.error().describe(), HasSubstr("none of its counters has run"));
  perf_.advance_box(70, 0, 1000, 10);
  perf_.advance_box(71, 0, 2000, 20);
  perf_.advance_box(70, 4, 3000, 30);
  perf_.advance_box(71, 4, 4000, 40);
  auto reading = counted.read();
  ASSERT_TRUE(reading.ok());
  EXPECT_THAT(names(reading), ElementsAre("socket0/uncore_imc_0", "socket0/uncore_imc_1",
                                          "socket1/uncore_imc_0", "socket1/uncore_imc_1"));
  EXPECT_EQ(channel(*reading, "socket1/uncore_imc_0"),
            (ChannelCounts{"socket1/uncore_imc_0", 1, 3000 * 64, 30 * 64, kSecond, kSecond}));
  perf_.advance_box(70, 0, 1, 1);
  reading = counted.read();
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(channel(*reading, "socket0/uncore_imc_0").read_bytes, 1001u * 64) << "since the start";
  EXPECT_EQ(perf_.opened.size(), 8u);
  EXPECT_THAT(perf_.opened, testing::Each(Pair(testing::_, 1)));
}

TEST_F(PmuCountersTest, WhatIsSharedIsExtrapolated) {
  auto counted = counters();
  (void)counted.read();
  second_for_all();
  perf_.advance(70, 0, kReads, 1000, 0.25);
  perf_.advance(70, 0, kWrites, 0, 1);
  auto reading = counted.read();
  ASSERT_TRUE(reading.ok());
  const ChannelCounts counts = channel(*reading, "socket0/uncore_imc_0");
  EXPECT_EQ(counts.read_bytes, (1000 + 70) * 64 * 8 / 5) << "it ran for 1.25 s of 2";
  EXPECT_EQ(counts.enabled_ns, 2 * kSecond);
  EXPECT_EQ(counts.running_ns, 5 * kSecond / 4);
}

TEST_F(PmuCountersTest, WhatDidNotRunIsMissingAndMadeUpForLater) {
  auto counted = counters();
  (void)counted.read();
  second_for_all();
  (void)counted.read();
  second_for_all();
  perf_.values[{70, 0, kReads}] = {.count = 70, .enabled_ns = 2 * kSecond, .running_ns = kSecond};
  auto reading = counted.read();
  EXPECT_THAT(names(reading),
              ElementsAre("socket0/uncore_imc_1", "socket1/uncore_imc_0", "socket1/uncore_imc_1"));
  perf_.advance(70, 0, kReads, 100, 0.5);
  perf_.advance(70, 0, kWrites, 1, 1);
  reading = counted.read();
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(channel(*reading, "socket0/uncore_imc_0").read_bytes, (70 + 400) * 64u)
      << "100 in half a second of two";
}

TEST_F(PmuCountersTest, ACpuThatGoesOfflineHandsItsChannelsOn) {
  auto counted = counters();
  (void)counted.read();
  second_for_all();
  ASSERT_TRUE(counted.read().ok());
  second_for_all();
  host_.write("uncore_imc_0", "cpumask", "1,4\n");
  (void)counted.read();
  EXPECT_EQ((perf_.opened[{70, 1, kReads}]), 1);
  EXPECT_EQ((perf_.opened[{70, 4, kReads}]), 1) << "those that did not move stay open";
  perf_.advance_box(70, 1, 5, 5);
  second_for_all();
  auto reading = counted.read();
  ASSERT_TRUE(reading.ok());
  const ChannelCounts moved = channel(*reading, "socket0/uncore_imc_0");
  EXPECT_EQ(moved.read_bytes, (70 + 70 + 5) * 64u) << "with the last second on the old CPU";
  EXPECT_EQ(channel(*reading, "socket1/uncore_imc_0").read_bytes, 3 * 70u * 64);
}

TEST_F(PmuCountersTest, PmusMayComeAndGo) {
  auto counted = counters();
  (void)counted.read();
  second_for_all();
  host_.remove("uncore_imc_1");
  EXPECT_THAT(names(counted.read()), ElementsAre("socket0/uncore_imc_0", "socket1/uncore_imc_0"));
  host_.remove("uncore_imc_0");
  const auto gone = counted.read();
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(gone.error().describe(), HasSubstr("load intel_uncore"));
  host_.zen_umc(0, 40, "0");
  (void)counted.read();
  perf_.advance(40, 0, 0x10a, 3);
  perf_.advance(40, 0, 0x20a, 2);
  auto reading = counted.read();
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(channel(*reading, "socket0/amd_umc_0").write_bytes, 128u);
}

TEST_F(PmuCountersTest, WithoutPermissionItIsSaidAndTriedAgain) {
  auto counted = counters();
  perf_.refuse_with = EACCES;
  auto reading = counted.read();
  ASSERT_FALSE(reading.ok());
  EXPECT_EQ(reading.error().code, ErrorCode::kDenied);
  perf_.refuse_with = 0;
  (void)counted.read();
  second_for_all();
  EXPECT_TRUE(counted.read().ok());
}

TEST_F(PmuCountersTest, ACounterThatDiesIsOpenedAgain) {
  auto counted = counters();
  (void)counted.read();
  second_for_all();
  perf_.fail_reading[{71, 4, kWrites}] = 1;
  auto reading = counted.read();
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading->channels.size(), 3u);
  EXPECT_THAT(reading->notices,
              Contains(HasSubstr("socket1/uncore_imc_1: counter: the kernel has stopped it")));
  (void)counted.read();
  second_for_all();
  reading = counted.read();
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading->channels.size(), 4u);
  EXPECT_THAT(reading->notices, IsEmpty());
  EXPECT_EQ((perf_.opened[{71, 4, kReads}]), 2);
}

TEST_F(PmuCountersTest, ANodeIsKnownOnlyWhereThereIsOneAnswer) {
  EXPECT_THAT(nodes_of_sockets(host_.paths()), ElementsAre(Pair(0, 0), Pair(1, 1)));
  host_.nodes({"0-1", "2-3", "4-7"});
  EXPECT_THAT(nodes_of_sockets(host_.paths()), ElementsAre(Pair(1, 2))) << "sub-NUMA clusters";
  host_.nodes({"0-3", "4-7", ""});
  EXPECT_THAT(nodes_of_sockets(host_.paths()), IsEmpty()) << "whose channel is node 2?";

  auto counted = counters({.nodes = {{"socket0/uncore_imc_1", 2}, {"socket9/uncore_imc_0", 1}}});
  (void)counted.read();
  second_for_all();
  auto reading = counted.read();
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(channel(*reading, "socket0/uncore_imc_0").node, std::nullopt);
  EXPECT_EQ(channel(*reading, "socket0/uncore_imc_1").node, 2);
  EXPECT_THAT(reading->notices, ElementsAre(HasSubstr("socket9/uncore_imc_0, which is not counted"),
                                            HasSubstr("of 3 of 4 channels")));
}

TEST_F(PmuCountersTest, DiesOfASocketAreToldApart) {
  host_.cpu(2, 0, 1);
  host_.write("uncore_imc_0", "cpumask", "0,2\n");
  host_.remove("uncore_imc_1");
  auto counted = counters();
  (void)counted.read();
  perf_.advance_box(70, 0, 1, 1);
  perf_.advance_box(70, 2, 2, 2);
  EXPECT_THAT(names(counted.read()),
              ElementsAre("socket0.die0/uncore_imc_0", "socket0.die1/uncore_imc_0"));
}

TEST(CountedBetween, WrapsAndRefusesToGoBackwards) {
  EXPECT_EQ(counted_between({UINT64_MAX - 9, 0, 0}, {10, 5, 5}), 20.0);
  EXPECT_EQ(counted_between({100, 50, 50}, {99, 60, 60}), std::nullopt);
  EXPECT_EQ(counted_between({100, 50, 50}, {200, 40, 40}), std::nullopt);
  EXPECT_EQ(counted_between({100, 50, 50}, {100, 60, 50}), std::nullopt) << "it did not run";
  EXPECT_EQ(counted_between({100, 50, 50}, {150, 60, 55}), 100.0);
  EXPECT_EQ(counted_between({0, 0, 0}, {5, 10, 11}), 5.0) << "the times are read one by one";
}

// The kernel's own: the PMU `msr` describes itself as uncore PMUs do and counts on a CPU.
TEST(KernelPerfEvents, CountWhatSysfsDescribes) {
  const std::string msr = Paths().event_sources + "/msr";
  auto type = read_file(AT_FDCWD, msr + "/type");
  auto format = read_file(AT_FDCWD, msr + "/format/event");
  auto event = read_file(AT_FDCWD, msr + "/events/tsc");
  if (!type.ok() || !format.ok() || !event.ok()) GTEST_SKIP() << "no PMU msr";
  auto config = encode_pmu_event({{"event", *parse_pmu_format(trimmed(*format))}}, *event);
  ASSERT_TRUE(config.ok()) << config.error().describe();
  auto opened = open_perf_event(
      {.type = static_cast<uint32_t>(std::stoul(*type)), .config = *config, .cpu = 0});
  if (!opened.ok() && opened.error().code == ErrorCode::kDenied)
    GTEST_SKIP() << opened.error().describe();
  ASSERT_TRUE(opened.ok()) << opened.error().describe();
  auto earlier = (*opened)->read();
  ASSERT_TRUE(earlier.ok());
  for (const Nanoseconds start = monotonic_now(); monotonic_now() == start;) continue;
  auto now = (*opened)->read();
  ASSERT_TRUE(now.ok());
  EXPECT_GT(now->count, earlier->count);
  EXPECT_GT(now->enabled_ns, earlier->enabled_ns);
  EXPECT_EQ(now->enabled_ns, now->running_ns);
  EXPECT_GT(counted_between(*earlier, *now).value_or(0), 0);
}

}  // namespace
}  // namespace memsluice
