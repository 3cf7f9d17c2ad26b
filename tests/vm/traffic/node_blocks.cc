// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/traffic/node_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace memsluice::traffic {
namespace {

namespace fs = std::filesystem;

Error bad_node(uint32_t node, std::string message) {
  return {ErrorCode::kFailed, fmt::format("node {}", node), std::move(message), {}, 0, {}};
}

// "node3" with prefix "node": 3.
std::optional<uint32_t> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::vector<uint32_t> numbered(const fs::path& directory, std::string_view prefix) {
  std::vector<uint32_t> numbers;
  std::error_code ignored;  // a directory that cannot be read has no entries
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (const auto number = number_after(entry.path().filename().string(), prefix)) {
      numbers.push_back(*number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Result<uint64_t> memory_block_bytes(const fs::path& sysfs_system) {
  const fs::path path = sysfs_system / "memory/block_size_bytes";
  uint64_t bytes = 0;
  if (!(std::ifstream(path) >> std::hex >> bytes) || bytes == 0) {
    return errno_error(errno != 0 ? errno : EINVAL, "read", path);
  }
  return bytes;
}

}  // namespace

Result<NodeBlocks> read_node_blocks(const fs::path& sysfs_system, uint64_t block_bytes) {
  const auto memory_bytes = memory_block_bytes(sysfs_system);
  if (!memory_bytes.ok()) return memory_bytes.error();
  std::map<uint32_t, uint32_t> node_of_block;
  NodeBlocks blocks_of_node;
  for (const uint32_t node : numbered(sysfs_system / "node", "node")) {
    std::vector<uint32_t>& blocks = blocks_of_node[node];
    const fs::path directory = sysfs_system / fmt::format("node/node{}", node);
    for (const uint64_t memory_block : numbered(directory, "memory")) {
      const uint64_t first = memory_block * *memory_bytes / block_bytes;
      const uint64_t last = ((memory_block + 1) * *memory_bytes - 1) / block_bytes;
      for (uint64_t block = first; block <= last; ++block) {
        const auto [owner, is_new] = node_of_block.emplace(block, node);
        if (owner->second != node) {
          return bad_node(node, fmt::format("shares block {} with node {}: use smaller blocks",
                                            block, owner->second));
        }
        if (is_new) blocks.push_back(static_cast<uint32_t>(block));
      }
    }
  }
  return blocks_of_node;
}

}  // namespace memsluice::traffic
