// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/counters/text_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "daemon/base/temporary_directory.h"
#include "daemon/base/unix_socket.h"
#include "daemon/host/counters/counters_text.h"
#include "daemon/host/counters/monotonic.h"

namespace memsluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ChannelCounts kLeft = {"left", 2, 10, 20, 100, 50};
const ChannelCounts kRight = {.name = "right", .read_bytes = UINT64_MAX, .write_bytes = 0};
constexpr const char* kText =
    "memsluice-counters 1\n"
    "# two of them\n\n"
    "right\tread_bytes=18446744073709551615 write_bytes=0\n"
    "left node=2 read_bytes=10  write_bytes=20 enabled_ns=100 running_ns=50";

TEST(CountersText, NamesChannelsInAnyOrder) {
  auto channels = parse_counters_text(kText);
  ASSERT_TRUE(channels.ok()) << channels.error().describe();
  EXPECT_THAT(*channels, ElementsAre(kLeft, kRight));
  EXPECT_THAT(*parse_counters_text(format_counters_text(*channels)), ElementsAre(kLeft, kRight));
}

TEST(CountersText, OfNoSenseIsRefusedWithItsLine) {
  const std::string first = "memsluice-counters 1\n";
  for (const auto& [text, reason] : std::vector<std::pair<std::string, const char*>>{
           {"", "name no channel"},
           {first, "name no channel"},
           {"memsluice-counters 2\na read_bytes=1 write_bytes=1", "line 1: is not"},
           {first + "a read_bytes=1", "line 2: read_bytes or write_bytes is missing"},
           {first + "a read_bytes=1 write_bytes=-1", "line 2: write_bytes:"},
           {first + "a read_bytes=1 write_bytes", "line 2: write_bytes:"},
           {first + "a read_bytes=1 write_bytes=1 read_bytes=1",
            "line 2: read_bytes is there twice"},
           {first + "a read_bytes=1 write_bytes=1 node=1024", "line 2: node:"},
           {first + "a read_bytes=1 write_bytes=1 color=3", "line 2: color is no key"},
           {first + "a read_bytes=1 write_bytes=1\na read_bytes=1 write_bytes=1",
            "line 3: a is there twice"}}) {
    auto channels = parse_counters_text(text);
    ASSERT_FALSE(channels.ok()) << text;
    EXPECT_THAT(channels.error().describe(), HasSubstr(reason)) << text;
  }
}

class TextCountersTest : public testing::Test {
 protected:
  TextCounters counters(CounterSettings settings = {}) const {
    settings.source = directory_.path("/counters");
    return TextCounters(settings);
  }
  TemporaryDirectory directory_;
};

TEST_F(TextCountersTest, ReadAFile) {
  directory_.write("/counters", kText);
  const auto before = monotonic_now();
  auto reading = counters({.nodes = {{"right", 7}}}).read();
  ASSERT_TRUE(reading.ok()) << reading.error().describe();
  ASSERT_EQ(reading->channels.size(), 2u);
  EXPECT_EQ(reading->channels[1].node, 7) << "the configuration goes first";
  EXPECT_LE(reading->time, monotonic_now());
  EXPECT_GE(reading->time, before - std::chrono::seconds(5));
}

TEST_F(TextCountersTest, AnOldFileSaysNothing) {
  directory_.write("/counters", kText);
  std::filesystem::last_write_time(
      directory_.path("/counters"),
      std::filesystem::file_time_type::clock::now() - std::chrono::minutes(2));
  auto reading = counters().read();
  ASSERT_FALSE(reading.ok());
  EXPECT_THAT(reading.error().describe(), HasSubstr("has not been written for 12"));
}

TEST_F(TextCountersTest, WhatIsNotThereOrNoFileIsSaid) {
  EXPECT_EQ(counters().read().error().code, ErrorCode::kNotFound);
  directory_.make_directory("/counters");
  EXPECT_THAT(counters().read().error().describe(), HasSubstr("neither a file nor a unix socket"));
  directory_.remove("/counters");
  directory_.write("/counters", std::string(2 << 20, '#'));
  EXPECT_THAT(counters().read().error().describe(), HasSubstr("more than 1 MiB"));
}

TEST_F(TextCountersTest, AskASocketEachTime) {
  auto listening = listen_at(directory_.path("/counters"), 0600);
  ASSERT_TRUE(listening.ok());
  std::thread exporter([&] {
    for (int asked = 0; asked < 2;) {
      Fd peer(::accept(listening->get(), nullptr, nullptr));
      if (!peer.valid()) {
        std::this_thread::yield();
        continue;
      }
      asked++;
      EXPECT_TRUE(send_all(peer.get(), kText).ok());
    }
  });
  auto counted = counters();
  for (int asked = 0; asked < 2; asked++) {
    auto reading = counted.read();
    EXPECT_TRUE(reading.ok());
    if (reading.ok()) EXPECT_THAT(reading->channels, ElementsAre(kLeft, kRight));
  }
  exporter.join();
  listening->reset();
  EXPECT_FALSE(counted.read().ok()) << "nobody listens";
}

}  // namespace
}  // namespace memsluice
