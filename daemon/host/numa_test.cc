// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/base/temporary_directory.h"

namespace memsluice {
namespace {

using testing::ElementsAre;

class NumaTest : public testing::Test {
 protected:
  NumaTest() {
    paths_.nodes = sysfs_.path("/node");
    paths_.memory_tiers = sysfs_.path("/memory_tiering");
    sysfs_.write("/node/has_memory", "0-1\n");
    sysfs_.write("/node/node0/meminfo", "Node 0 MemTotal: 2048 kB\nNode 0 MemFree: 1024 kB\n");
    sysfs_.write("/node/node0/cpulist", "0-3\n");
    sysfs_.write("/node/node0/distance", "10 20\n");
    sysfs_.write("/node/node1/meminfo", "Node 1 MemTotal: 4096 kB\nNode 1 MemFree: 4096 kB\n");
    sysfs_.write("/node/node1/cpulist", "\n");
    sysfs_.write("/node/node1/distance", "20 10\n");
  }

  TemporaryDirectory sysfs_;
  Paths paths_;
};

TEST_F(NumaTest, ReadsNodesAndRanksTheirTiers) {
  // 22 comes after 4 as a number, before it as a text.
  sysfs_.write("/memory_tiering/memory_tier22/nodelist", "1\n");
  sysfs_.write("/memory_tiering/memory_tier4/nodelist", "0\n");
  sysfs_.write("/memory_tiering/memory_tier1/nodelist", "\n");
  sysfs_.write("/memory_tiering/uevent", "");
  sysfs_.write("/node/node0/access0/initiators/read_bandwidth", "20000\n");
  sysfs_.write("/node/node0/access0/initiators/write_bandwidth", "0\n");
  auto nodes = read_numa_nodes(paths_);
  ASSERT_TRUE(nodes.ok());
  ASSERT_EQ(nodes->size(), 2u);
  const NumaNode& fast = (*nodes)[0];
  EXPECT_EQ(fast.id, 0);
  EXPECT_EQ(fast.tier, 0);
  EXPECT_EQ(fast.total_bytes, 2u << 20);
  EXPECT_EQ(fast.free_bytes, 1u << 20);
  EXPECT_EQ(fast.cpus, 4);
  EXPECT_THAT(fast.distance, ElementsAre(10, 20));
  EXPECT_EQ((*nodes)[1].tier, 1);
  EXPECT_EQ((*nodes)[1].cpus, 0);
  EXPECT_EQ(fast.read_bandwidth_bytes_per_s, uint64_t{20000} << 20);
  EXPECT_EQ(fast.write_bandwidth_bytes_per_s, std::nullopt) << "the firmware does not know";
  EXPECT_EQ((*nodes)[1].read_bandwidth_bytes_per_s, std::nullopt);
  EXPECT_EQ(tier_0_bytes(*nodes), 2u << 20);
}

TEST_F(NumaTest, WithoutTiersAllNodesAreInTheFirst) {
  auto nodes = read_numa_nodes(paths_);
  ASSERT_TRUE(nodes.ok());
  EXPECT_EQ(tier_0_bytes(*nodes), 6u << 20);
}

TEST_F(NumaTest, LeavesOutANodeThatWentAway) {
  sysfs_.remove("/node/node1");
  EXPECT_EQ(read_numa_nodes(paths_)->size(), 1u);
}

TEST_F(NumaTest, SaysSoWhereThereAreNoNodes) {
  sysfs_.remove("/node");
  EXPECT_FALSE(read_numa_nodes(paths_).ok());
}

}  // namespace
}  // namespace memsluice
