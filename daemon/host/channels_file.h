// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/config_problem.h"
#include "daemon/host/physical_memory.h"

namespace memsluice {

inline constexpr const char* kDefaultChannelsPath = "/etc/memsluice/channels.toml";

// The least that x86 adds or takes away at once; what a host really uses is in sysfs.
inline constexpr uint64_t kMemoryBlockBytesMin = uint64_t{128} << 20;

// As the firmware tells them (HMAT); what it does not tell is not there.
struct ChannelSpeeds {
  std::optional<uint32_t> read_mib_per_s = {};
  std::optional<uint32_t> write_mib_per_s = {};
  std::optional<uint32_t> read_latency_ns = {};
  std::optional<uint32_t> write_latency_ns = {};

  bool operator==(const ChannelSpeeds&) const = default;
};

struct ChannelDefinition {
  std::string name = {};
  std::string group = {};
  // Memory that is withheld from the kernel at boot and added as the node; none: the node is there.
  std::optional<PhysicalRange> range = {};
  std::optional<int> node = {};  // none: any id that the kernel can still use
  ChannelSpeeds speeds = {};
  SourcePosition position = {};
};

// The channels of a host, as `memsluice provision` writes them and people change them.
struct ChannelsFile {
  std::vector<std::string> groups = {};
  std::vector<ChannelDefinition> channels = {};
};

struct LoadedChannels {
  ChannelsFile file = {};
  std::vector<ConfigProblem> problems = {};  // all there are; with any, file is not to be used
};

// Pure. Checks all that can be checked without the host. `file` is only for messages.
LoadedChannels parse_channels_file(std::string_view text, const std::string& file);

// For parse_channels_file(); `heading` stands above it as a comment.
std::string format_channels_file(const ChannelsFile& file, std::string_view heading);

// What a host's kernel says of its memory.
struct HostMemory {
  uint64_t block_bytes = kMemoryBlockBytesMin;
  PhysicalRanges ram = {};                   // in use, whoever has added it
  std::vector<int> possible_nodes = {};      // the ids that nodes can have until the next boot
  std::map<int, PhysicalRanges> nodes = {};  // their memory blocks, if they have any
};

// Whether the channel is a node already: one that it is made of, or that has its memory, and no
// other.
bool is_made(const ChannelDefinition& channel, const HostMemory& host);

// What keeps those that are not made from being made on this host. Pure.
std::vector<ConfigProblem> check_channels(const ChannelsFile& file, const HostMemory& host);

}  // namespace memsluice
