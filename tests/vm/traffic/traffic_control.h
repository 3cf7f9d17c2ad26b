// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "daemon/base/result.h"
#include "tests/vm/traffic/traffic_map.h"

namespace memsluice::traffic {

// A traffic file that a plugin has laid out.
struct OpenTrafficFile {
  // An empty path stands for the guest's ivshmem device.
  static Result<OpenTrafficFile> open(const std::string& path);

  Mapping mapping;
  TrafficFile file;
};

// Asks the plugin to take over what was written into the file, and waits until it has.
Result<void> request(const TrafficFile& file);

Result<void> set_counting(const TrafficFile& file, bool on);
Result<void> reset_counters(const TrafficFile& file);

struct Traffic {
  uint64_t read_bytes = 0;
  uint64_t write_bytes = 0;

  Traffic& operator+=(const BlockCounters& counters);
  bool operator==(const Traffic&) const = default;
};

// Of all vCPUs and other agents. Blocks beyond the file's have none.
Traffic traffic_of_blocks(const TrafficFile& file, std::span<const uint32_t> blocks);
inline Traffic traffic_of_block(const TrafficFile& file, uint32_t block) {
  return traffic_of_blocks(file, {&block, 1});
}

}  // namespace memsluice::traffic
