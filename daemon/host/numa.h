// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/host/paths.h"

namespace memsluice {

// The kernel's own limit (CONFIG_NODES_SHIFT is 10).
inline constexpr uint64_t kNodeIdMax = 1023;

struct NumaNode {
  int id = 0;
  int tier = 0;  // 0 is the fastest
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
  int cpus = 0;
  // What the firmware says that its nearest CPUs can move; nothing if it does not say.
  std::optional<uint64_t> read_bandwidth_bytes_per_s = {};
  std::optional<uint64_t> write_bandwidth_bytes_per_s = {};
  std::vector<int> distance = {};  // to each node that is online, itself included, in order of id
};

// The nodes that have memory, by id. Where the kernel knows no tiers all are in tier 0.
Result<std::vector<NumaNode>> read_numa_nodes(const Paths& paths);

uint64_t tier_0_bytes(const std::vector<NumaNode>& nodes);

}  // namespace memsluice
