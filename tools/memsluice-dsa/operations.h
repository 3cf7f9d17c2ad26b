// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>

#include "tools/memsluice-dsa/descriptor.h"
#include "tools/memsluice-dsa/guest_memory.h"

namespace memsluice::dsa {

// The seed of a checksum is read from memory. The other two flags of checksums, which turn off its
// inversion and its reflection, this device does not have.
constexpr uint32_t kCrcFlagReadSeed = 0x10000;

// What comes of a descriptor, for its completion record.
struct Outcome {
  uint8_t status = DSA_COMP_SUCCESS;
  uint8_t result = 0;
  uint32_t bytes_completed = 0;  // descriptors, of a batch
  uint64_t fault_address = 0;
  uint64_t crc = 0;
  uint32_t invalid_flags = 0;

  bool succeeded() const { return status == DSA_COMP_SUCCESS; }
};

CompletionRecord record_of(const Outcome& outcome);

// Executes a descriptor that check_descriptor() has nothing against, but for batches, which are
// their queue's. A page fault ends it: what was done before stays done, and is told.
Outcome execute(const Descriptor& descriptor, const GuestMemory& memory);

// CRC-32C (Castagnoli), of what came before and these bytes.
uint32_t crc32c(uint32_t seed, const uint8_t* data, uint64_t bytes);

}  // namespace memsluice::dsa
