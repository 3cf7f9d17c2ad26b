// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <linux/idxd.h>

#include <array>
#include <cstdint>

namespace memsluice::dsa {

using Descriptor = dsa_hw_desc;
using CompletionRecord = dsa_completion_record;
static_assert(sizeof(Descriptor) == 64 && sizeof(CompletionRecord) == 32);

// One bit for each operation.
using Operations = std::array<uint64_t, 4>;

// What this device can do.
Operations supported_operations();
bool has_operation(const Operations& operations, unsigned opcode);

// What a work queue allows.
struct Limits {
  Operations operations = {};
  uint64_t max_transfer_bytes = 0;
  uint32_t max_batch = 0;
  bool block_on_fault = false;
  unsigned vectors = 0;  // interrupt handles are numbers below it, and not 0
};

// Why a descriptor is not executed; status 0: it is.
struct Refusal {
  uint8_t status = 0;
  uint32_t invalid_flags = 0;
};

// Checks what can be told without looking into memory: the operation, then its flags, reserved
// fields, addresses and sizes. The codes are those of the DSA specification.
Refusal check_descriptor(const Descriptor& descriptor, const Limits& limits, bool in_batch);

// Whether it reads or writes @address, its completion record apart.
bool touches(const Descriptor& descriptor, uint64_t address);

constexpr bool has_flag(const Descriptor& descriptor, uint32_t flag) {
  return descriptor.flags & flag;
}

}  // namespace memsluice::dsa
