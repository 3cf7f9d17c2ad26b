// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "daemon/lending/nic/nic.h"

namespace memsluice::nic {

constexpr uint32_t kBlockBytes = 64;
constexpr uint32_t kMaxScatterEntries = 30;

// The first block of a request as it lies in a send queue. Further scatter entries follow, four in
// a block. What was posted is taken from here alone: others may have written into it.
struct RequestBlock {
  uint16_t index =
      0;  // low bits of the absolute block, so that an old request is not taken for new
  Opcode opcode = Opcode::kNop;
  uint8_t flags = 0;
  uint8_t blocks = 1;
  uint8_t entries = 0;
  Rights rights = 0;
  uint8_t new_tag = 0;
  Key key = 0;
  uint32_t queue = 0;  // a completion queue or, in the lower 24 bits, a queue pair
  uint32_t enabled = 0;
  Key region_key = 0;
  uint64_t remote_address = 0;  // of BIND: where the window begins
  uint64_t operand = 0;         // of BIND: its length
  uint64_t swap = 0;            // of BIND: where it begins in the region
  ScatterEntry entry = {};
};
static_assert(sizeof(RequestBlock) == kBlockBytes);

constexpr uint8_t kFlagSignaled = 1 << 0;
constexpr uint8_t kFlagFence = 1 << 1;
constexpr uint8_t kFlagAnyQueuePair = 1 << 2;

// BIND and LOCAL_INVALIDATE take three and two blocks at least, as on mlx5.
constexpr uint32_t blocks_for(Opcode opcode, uint32_t entries) {
  const uint32_t least = opcode == Opcode::kBind ? 3 : opcode == Opcode::kLocalInvalidate ? 2 : 1;
  const uint32_t needed = entries <= 1 ? 1 : 1 + (entries - 1 + 3) / 4;
  return needed > least ? needed : least;
}

bool is_opcode(Opcode opcode);
RequestBlock encode(const WorkRequest& request);
std::optional<FieldPlace> field_place_of(Opcode opcode, Field field);

}  // namespace memsluice::nic
