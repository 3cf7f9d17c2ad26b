// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/traffic/traffic_file.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/vm/traffic/traffic_control.h"

namespace memsluice::traffic {
namespace {

class TrafficFileTest : public testing::Test {
 protected:
  TrafficFileTest() : memory_(kFileBytes) {
    layout_.magic = kMagic;
    layout_.version = kVersion;
    layout_.vcpus = 4;
    layout_.blocks = 512;
    layout_.channels = 5;
    layout_.block_bytes = 128 << 20;
    layout_.line_bytes = 64;
    layout_.start_ns = 1'000'000;
  }

  std::optional<TrafficFile> attach() {
    std::memcpy(memory_.data(), &layout_, sizeof layout_);
    return TrafficFile::attach(memory_);
  }
  size_t offset_of(const void* item) const {
    return static_cast<size_t>(static_cast<const std::byte*>(item) - memory_.data());
  }

  Layout layout_{};
  std::vector<std::byte> memory_;
};

TEST_F(TrafficFileTest, AreasFollowOneAnother) {
  const auto file = attach();
  ASSERT_TRUE(file);
  const size_t ends[] = {offset_of(&file->control()) + sizeof(Control),
                         offset_of(&file->settings(0)),
                         offset_of(&file->settings(layout_.blocks)),
                         offset_of(&file->bytes_per_second(0)),
                         offset_of(&file->bytes_per_second(5)),
                         offset_of(&file->next_free_ps(0)),
                         offset_of(&file->next_free_ps(5)),
                         offset_of(&file->slot(0)),
                         offset_of(&file->counters(0, 0)),
                         offset_of(&file->counters(0, layout_.blocks)),
                         offset_of(&file->slot(1)),
                         offset_of(&file->slot(4)),
                         offset_of(&file->counters(4, layout_.blocks)),
                         static_cast<size_t>(layout_.used_bytes())};
  EXPECT_TRUE(std::is_sorted(std::begin(ends), std::end(ends)));
  EXPECT_LE(layout_.used_bytes(), kFileBytes);
}

TEST_F(TrafficFileTest, RefusesALayoutThatLeadsOutOfTheFile) {
  EXPECT_FALSE(TrafficFile::attach(std::span(memory_).first(100)));
  EXPECT_FALSE(TrafficFile::attach(memory_)) << "nobody has laid it out";
  const Layout good = layout_;
  const auto refuses = [&](auto field, auto value) {
    layout_ = good;
    layout_.*field = value;
    return !attach();
  };
  EXPECT_TRUE(refuses(&Layout::version, kVersion + 1));
  EXPECT_TRUE(refuses(&Layout::vcpus, 200u));
  EXPECT_TRUE(refuses(&Layout::vcpus, UINT32_MAX));
  EXPECT_TRUE(refuses(&Layout::blocks, 0u));
  EXPECT_TRUE(refuses(&Layout::blocks, UINT32_MAX));
  EXPECT_TRUE(refuses(&Layout::channels, UINT32_MAX));
  EXPECT_TRUE(refuses(&Layout::block_bytes, uint64_t{0}));
  EXPECT_TRUE(refuses(&Layout::line_bytes, uint64_t{0}));
}

TEST_F(TrafficFileTest, SumsVcpusAndOtherAgents) {
  const auto file = attach();
  ASSERT_TRUE(file);
  for (uint32_t slot = 0; slot <= file->other_agents_slot(); ++slot) {
    file->counters(slot, 2).read_bytes = 1u << slot;
    file->counters(slot, 3).write_bytes = 100u << slot;
  }
  const uint32_t blocks[] = {2, 3, layout_.blocks};
  EXPECT_EQ(traffic_of_blocks(*file, blocks), (Traffic{31, 3100}));
}

TEST_F(TrafficFileTest, OtherAgentsAreChargedByBlockWhileCounting) {
  const auto file = attach();
  ASSERT_TRUE(file);
  for (uint32_t i = 0; i < layout_.blocks; ++i) file->settings(i).channel = kNoChannel;
  const uint64_t start = 5 * layout_.block_bytes - 100;
  charge_other_agent(*file, start, 300, true, layout_.start_ns);
  EXPECT_EQ(traffic_of_block(*file, 4), Traffic{}) << "counting is off";
  file->control().counting = 1;
  EXPECT_EQ(charge_other_agent(*file, start, 300, true, layout_.start_ns), 0u);
  EXPECT_EQ(traffic_of_block(*file, 4), (Traffic{0, 100}));
  EXPECT_EQ(traffic_of_block(*file, 5), (Traffic{0, 200}));
  const uint64_t end = layout_.blocks * layout_.block_bytes;
  charge_other_agent(*file, end - 8, 1 << 20, false, layout_.start_ns);
  charge_other_agent(*file, UINT64_MAX, 1 << 20, false, layout_.start_ns);
  EXPECT_EQ(traffic_of_block(*file, layout_.blocks - 1), (Traffic{8, 0}));
}

TEST_F(TrafficFileTest, OtherAgentsQueueForTheirChannel) {
  const auto file = attach();
  ASSERT_TRUE(file);
  file->control().counting = 1;
  file->settings(0).channel = 1;
  file->settings(1).channel = 12345;  // scribbled
  file->bytes_per_second(1) = 1'000'000'000;
  const uint64_t now = layout_.start_ns + 5000;
  EXPECT_EQ(charge_other_agent(*file, 0, 4096, true, now), now + 4096);
  EXPECT_EQ(charge_other_agent(*file, 0, 4096, false, now), now + 2 * 4096);
  EXPECT_EQ(charge_other_agent(*file, layout_.block_bytes, 4096, false, now), 0u);
  file->bytes_per_second(1) = 1;
  EXPECT_EQ(channel_rate(*file, 1), kMinBytesPerSecond);
}

}  // namespace
}  // namespace memsluice::traffic
