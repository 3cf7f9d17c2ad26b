// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "daemon/base/result.h"

namespace memsluice::traffic {

inline constexpr auto kSysfsSystem = "/sys/devices/system";

using NodeBlocks = std::map<uint32_t, std::vector<uint32_t>>;

// The blocks of each NUMA node of the running kernel, in ascending order, from its memory blocks
// below /sys/devices/system. What the kernel calls a physical address, the plugin does too, so
// the hole below 4 GiB needs no special care. A block that two nodes share is an error: its
// traffic could not be told apart.
Result<NodeBlocks> read_node_blocks(const std::filesystem::path& sysfs_system,
                                    uint64_t block_bytes);

}  // namespace memsluice::traffic
