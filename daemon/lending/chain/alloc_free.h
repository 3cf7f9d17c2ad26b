// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "daemon/lending/chain/program.h"

namespace memsluice::chain {

// Where an Alloc chain takes chunks from. Rings: instance i of a tenant's chain reads slot i of a
// ring that is its own, so nobody waits for another tenant. Shared queue (OneSidedMW, NSDI '26):
// all take the next slot of one queue with a FETCH_ADD; receives that are enabled must not be more
// than entries that are published.
enum class Mode : uint8_t { kRings, kSharedQueue };

enum class ChunkState : uint8_t { kFree = 0, kPopped = 1, kOwned = 2, kFreeing = 3, kDirty = 4 };

// The word by which the memory node knows a chunk's owner.
constexpr uint64_t owner_word(ChunkState state, uint32_t tenant) {
  return static_cast<uint64_t>(state) | uint64_t{tenant} << 8;
}
constexpr ChunkState state_of(uint64_t word) {
  return static_cast<ChunkState>(word & 0xFF);
}
constexpr uint32_t tenant_of(uint64_t word) {
  return static_cast<uint32_t>(word >> 8);
}

// A chunk as the memory node's CPU describes it to chains. Window 0 serves the tenant's Free queue
// pair without any rights: only who holds it can free the chunk. The others serve access queue
// pairs.
struct Group {
  uint32_t id = 0;
  uint64_t address = 0;
  std::vector<uint32_t> keys;     // that the windows have
  std::vector<uint8_t> new_tags;  // that they get when they are bound
  uint64_t owner_address = 0;     // of the owner word
  uint64_t credit_address = 0;    // of the Alloc queue pair's next receive that is not allowed yet
  uint32_t alloc_queue = 0;       // that queue pair
  uint32_t epoch = 0;
};

struct Shape {
  uint32_t windows = 2;  // of a group, the one of the Free queue pair included
  Mode mode = Mode::kRings;
  uint32_t instances = 64;
  uint32_t entries = 64;      // groups
  uint32_t alloc_queues = 1;  // of a tenant
  uint64_t chunk_bytes = 4096;
};

constexpr uint32_t kSlotBytes = 8;          // the address of an entry
constexpr uint32_t kRecordBytes = 256;      // of a group, for Free: by its number
constexpr uint32_t kRequestBytes = 8;       // of Alloc: a number that comes back
constexpr uint32_t kFreeRequestBytes = 10;  // the same, and the lower 16 bits of a group's number
constexpr uint32_t kMaxRecords = 1 << 16;
// The shared queue is as long as its offset counts; what wraps falls out of the word.
constexpr uint32_t kSharedSlots = (1 << 16) / kSlotBytes;
constexpr uint64_t kNextSlot = uint64_t{kSlotBytes} << 48;

// Windows that are described by one READ: the rest by further ones.
constexpr uint32_t kWindowsOfPart = 4;

uint32_t entry_bytes(const Shape& shape);
uint32_t reply_bytes(const Shape& shape);

// The word in `credits` is the number of receives that the Alloc queue pair is allowed, plus 1.
//
// Buffers: `ring` (or `queue` and `head`), `entries`, `owners`, `credits`, `constants`, `replies`,
// `scratch`. Queues: `alloc` (to the compute node), `binder`. Symbols: `region_key`,
// `chunk_bytes`, `window0` to `windowN` (the queue pair that each window serves), `alloc`.
Program alloc_program(const Shape& shape);
// `credits` are those of all of the tenant's Alloc queue pairs. Buffers: `records`, `owners`,
// `credits`, `constants`, `returns`, `replies`, `scratch`. Queues: `free`, `unbinder`.
Program free_program(const Shape& shape);

// What the CPU writes into `entries`, `records` and `constants`. @empty: for a slot without a
// group, which all slots point to at first.
std::vector<std::byte> encode_entry(const Shape& shape, const Group& group, uint64_t entry_address);
std::vector<std::byte> encode_empty_entry(const Shape& shape, uint64_t entry_address);
std::vector<std::byte> encode_record(const Shape& shape, const Group& group);
std::vector<std::byte> encode_constants(uint32_t tenant);
constexpr uint32_t kConstantBytes = 40;

struct Reply {
  uint64_t request = 0;
  uint32_t group = 0;  // kNoGroup: there was none
  uint32_t epoch = 0;
  uint64_t address = 0;
  std::vector<uint32_t> keys;  // of windows 1 and up
};
constexpr uint32_t kNoGroup = 0xFFFFFFFF;
Reply decode_reply(const Shape& shape, std::span<const std::byte> bytes);

}  // namespace memsluice::chain
