// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>

namespace memsluice::dsa {

// What a device has. The defaults are what a device of a Sapphire Rapids says of itself.
struct Shape {
  static constexpr unsigned kGroupsMax = 16;
  static constexpr unsigned kEnginesMax = 16;
  static constexpr unsigned kQueuesMax = 64;

  unsigned engines = 4;
  unsigned groups = 4;
  unsigned queues = 8;
  unsigned queue_entries = 128;      // of all work queues together
  unsigned max_batch_shift = 10;     // descriptors of a batch, a power of two
  unsigned max_transfer_shift = 31;  // bytes of a descriptor, a power of two

  // The first is for everything but completions.
  unsigned vectors() const { return queues + 1; }
};

}  // namespace memsluice::dsa
