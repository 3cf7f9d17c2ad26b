// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/memsluice/provision/evidence.h"
#include "tools/memsluice/provision/propose.h"

namespace memsluice::provision {

// What withheld memory is to become.
enum class Use {
  kNodes,    // nodes of this host, which the module adds: reserved until then
  kDevices,  // DAX devices, for VMs
};

// What the operator wants: at least one of the first three.
struct Wish {
  std::optional<unsigned> channels = {};    // so many of those that the evidence shows, from above
  std::vector<PhysicalRange> ranges = {};   // each one channel
  std::vector<int> nodes = {};              // that are there, and stay as they are
  std::optional<uint64_t> host_bytes = {};  // that the host keeps at least
  Use use = Use::kNodes;
};

struct PlannedChannel {
  ChannelDefinition definition;
  std::string source;
  uint32_t domain = 0;  // of SRAT, where it is a range that becomes a node
};

struct Plan {
  std::vector<PlannedChannel> channels;
  std::vector<std::string> groups;
  PhysicalRanges withheld;
  uint64_t host_bytes = 0;                    // that are left
  std::vector<std::string> kernel_arguments;  // as the kernel is to read them
  std::optional<Srat> srat;                   // to replace that of the firmware; none: it will do
  std::vector<std::string> warnings;

  ChannelsFile channels_file() const;
};

// The least that a host has to keep, whatever is wished: what it runs on, and what the kernel needs
// to describe the channels' pages.
uint64_t least_host_bytes(uint64_t channel_bytes);

// Pure. Refuses what would not work, or leave the host too little.
Result<Plan> make_plan(const Evidence& evidence, const Proposals& proposals, const Wish& wish);

}  // namespace memsluice::provision
