// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"
#include "uapi/memsluice.h"

namespace memsluice {

struct Channel {
  uint32_t node = 0;
  uint32_t weight = 1;  // 0: for when all those with a weight are full

  bool operator==(const Channel&) const = default;
};

// Where new pages of a tenant lie. Without channels the kernel chooses.
struct Placement {
  std::vector<Channel> channels = {};
  uint32_t granule_order = MEMSLUICE_GRANULE_ORDER_DEFAULT;  // log2 of base pages

  bool operator==(const Placement&) const = default;
};

// "1:3,2:2,3" (a weight that is left out is 1) or "none".
Result<std::vector<Channel>> parse_channels(std::string_view text);

// What becomes of the channels that a tenant has.
struct ChannelChange {
  std::vector<Channel> set;  // added, or given another weight
  std::vector<uint32_t> removed;

  bool operator==(const ChannelChange&) const = default;
};

// "+3:2,-1": node 3 comes, or gets another weight, and node 1 goes.
bool is_channel_change(std::string_view text);
Result<ChannelChange> parse_channel_change(std::string_view text);
// Those that stay keep their order, and new ones come last. kBadRequest: what is to go is none of
// them, or none is left.
Result<std::vector<Channel>> changed(std::vector<Channel> channels, const ChannelChange& change);
// For parse_channels.
std::string format_channels(const std::vector<Channel>& channels);

// "2M": a power of two, from a page to 1 GiB. Return: its granule_order.
Result<uint32_t> parse_granule(std::string_view text);
Result<uint32_t> granule_order(uint64_t bytes);
uint64_t granule_bytes(uint32_t order);

// What an errno of MEMSLUICE_IOC_PLACEMENT_SET means.
Error placement_error(int os_error);

}  // namespace memsluice
