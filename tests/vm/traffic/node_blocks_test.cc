// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/traffic/node_blocks.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace memsluice::traffic {
namespace {

namespace fs = std::filesystem;

class NodeBlocksTest : public testing::Test {
 protected:
  NodeBlocksTest() {
    std::string name = fs::temp_directory_path() / "node-blocks-XXXXXX";
    root_ = mkdtemp(name.data());
    fs::create_directories(root_ / "memory");
    std::ofstream(root_ / "memory/block_size_bytes") << "8000000\n";
    // What else the kernel has there.
    fs::create_directories(root_ / "node/power");
    std::ofstream(root_ / "node/online") << "0-1\n";
  }
  ~NodeBlocksTest() override { fs::remove_all(root_); }

  void add(uint32_t node, std::initializer_list<int> memory_blocks) {
    const fs::path directory = root_ / "node" / ("node" + std::to_string(node));
    fs::create_directories(directory / "memory_failure");
    for (const int block : memory_blocks) {
      fs::create_directory(directory / ("memory" + std::to_string(block)));
    }
  }

  fs::path root_;
};

TEST_F(NodeBlocksTest, FollowsTheHoleBelowFourGigabytes) {
  add(0, {0, 1, 15, 32, 33});
  add(1, {34, 35, 100});
  add(2, {});
  const auto nodes = read_node_blocks(root_, 128 << 20);
  ASSERT_TRUE(nodes.ok()) << nodes.error().describe();
  EXPECT_EQ(*nodes, (NodeBlocks{{0, {0, 1, 15, 32, 33}}, {1, {34, 35, 100}}, {2, {}}}));
}

TEST_F(NodeBlocksTest, CutsMemoryBlocksIntoSmallerBlocks) {
  add(0, {0});
  add(1, {3});
  const auto nodes = read_node_blocks(root_, 64 << 20);
  ASSERT_TRUE(nodes.ok()) << nodes.error().describe();
  EXPECT_EQ(*nodes, (NodeBlocks{{0, {0, 1}}, {1, {6, 7}}}));
}

TEST_F(NodeBlocksTest, JoinsMemoryBlocksOfOneNode) {
  add(0, {0, 1, 2});
  add(1, {4});
  const auto nodes = read_node_blocks(root_, 256 << 20);
  ASSERT_TRUE(nodes.ok()) << nodes.error().describe();
  EXPECT_EQ(*nodes, (NodeBlocks{{0, {0, 1}}, {1, {2}}}));
}

TEST_F(NodeBlocksTest, RefusesABlockOfTwoNodes) {
  add(0, {0, 1, 2});
  add(1, {3});
  const auto nodes = read_node_blocks(root_, 256 << 20);
  ASSERT_FALSE(nodes.ok());
  EXPECT_NE(nodes.error().describe().find("node 1: shares block 1 with node 0"), std::string::npos)
      << nodes.error().describe();
}

TEST_F(NodeBlocksTest, NamesTheFileItMisses) {
  fs::remove(root_ / "memory/block_size_bytes");
  const auto nodes = read_node_blocks(root_, 128 << 20);
  ASSERT_FALSE(nodes.ok());
  EXPECT_NE(nodes.error().describe().find("block_size_bytes"), std::string::npos);
}

}  // namespace
}  // namespace memsluice::traffic
