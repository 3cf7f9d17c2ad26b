// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/operations.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace memsluice::dsa {
namespace {

using Access = GuestMemory::Access;
using View = GuestMemory::View;

// How far an operation has come, and what it is about.
struct Walk {
  const Descriptor& descriptor;
  const View view;
  uint64_t bytes = 0;
  Outcome outcome = {};

  Walk(const Descriptor& what, const GuestMemory& memory)
      : descriptor(what), view(memory), bytes(what.xfer_size) {}

  uint64_t left() const { return bytes - outcome.bytes_completed; }
  void advance(uint64_t done) { outcome.bytes_completed += static_cast<uint32_t>(done); }
  // The page at @address cannot be had. Always false.
  bool fault(uint64_t address, Access access) {
    // Nobody is there who would bring the page: who asks to wait for it is told so.
    outcome.status =
        has_flag(descriptor, IDXD_OP_FLAG_BOF) ? DSA_COMP_PAGE_FAULT_IR : DSA_COMP_PAGE_FAULT_NOBOF;
    if (access == Access::kWrite) outcome.status |= DSA_COMP_STATUS_WRITE;
    outcome.fault_address = address;
    return false;
  }
  // Calls @what with as much as lies together from @address on, until all is done. It returns how
  // much of it was done: less ends it. Return: whether all was done.
  template <typename Function>
  bool each(uint64_t address, Access access, Function what) {
    while (left()) {
      const uint64_t at = address + outcome.bytes_completed;
      const auto piece = view.from(at, left(), access);
      if (piece.empty()) return fault(at, access);
      const uint64_t done = what(piece);
      advance(done);
      if (done < piece.size()) return false;
    }
    return true;
  }
  // The same with source and destination.
  template <typename Function>
  bool each_pair(Access second_access, Function what) {
    while (left()) {
      const uint64_t first = descriptor.src_addr + outcome.bytes_completed;
      const uint64_t second = descriptor.dst_addr + outcome.bytes_completed;
      const auto a = view.from(first, left(), Access::kRead);
      if (a.empty()) return fault(first, Access::kRead);
      const auto b = view.from(second, a.size(), second_access);
      if (b.empty()) return fault(second, second_access);
      const uint64_t done = what(a.data(), b.data(), b.size());
      advance(done);
      if (done < b.size()) return false;
    }
    return true;
  }
};

bool move_backward(Walk& walk) {
  walk.outcome.result = 1;
  while (walk.left()) {
    const uint64_t source_end = walk.descriptor.src_addr + walk.left();
    const uint64_t end = walk.descriptor.dst_addr + walk.left();
    const auto from = walk.view.before(source_end, walk.left(), Access::kRead);
    if (from.empty()) return walk.fault(source_end - 1, Access::kRead);
    const auto to = walk.view.before(end, from.size(), Access::kWrite);
    if (to.empty()) return walk.fault(end - 1, Access::kWrite);
    std::memmove(to.data(), from.data() + from.size() - to.size(), to.size());
    walk.advance(to.size());
  }
  return true;
}

bool move(Walk& walk) {
  const uint64_t distance = walk.descriptor.dst_addr - walk.descriptor.src_addr;
  // What is still to be read must not be overwritten.
  if (distance != 0 && distance < walk.bytes) return move_backward(walk);
  return walk.each_pair(Access::kWrite, [](const uint8_t* from, uint8_t* to, uint64_t bytes) {
    std::memmove(to, from, bytes);
    return bytes;
  });
}

// @pattern repeated, shifted by what is already done.
std::array<uint8_t, 8> pattern_at(uint64_t pattern, uint64_t done) {
  std::array<uint8_t, 8> bytes;
  std::memcpy(bytes.data(), &pattern, bytes.size());
  std::rotate(bytes.begin(), bytes.begin() + done % bytes.size(), bytes.end());
  return bytes;
}

bool fill(Walk& walk) {
  return walk.each(walk.descriptor.dst_addr, Access::kWrite, [&](std::span<uint8_t> piece) {
    const auto pattern = pattern_at(walk.descriptor.pattern, walk.outcome.bytes_completed);
    for (size_t i = 0; i < piece.size(); i++) piece[i] = pattern[i % pattern.size()];
    return piece.size();
  });
}

// The operation itself has succeeded; what it says of the data may not be what was expected.
void expect(Walk& walk, bool differs) {
  walk.outcome.result = differs;
  if (has_flag(walk.descriptor, IDXD_OP_FLAG_CR) &&
      differs != static_cast<bool>(walk.descriptor.expected_res & 1))
    walk.outcome.status = DSA_COMP_SUCCESS_PRED;
}

void compare(Walk& walk) {
  const bool same =
      walk.each_pair(Access::kRead, [](const uint8_t* a, const uint8_t* b, uint64_t bytes) {
        return static_cast<uint64_t>(std::mismatch(a, a + bytes, b).first - a);
      });
  if (walk.outcome.succeeded()) expect(walk, !same);
}

void compare_pattern(Walk& walk) {
  const bool same =
      walk.each(walk.descriptor.src_addr, Access::kRead, [&](std::span<uint8_t> piece) {
        const auto pattern = pattern_at(walk.descriptor.comp_pattern, walk.outcome.bytes_completed);
        size_t i = 0;
        while (i < piece.size() && piece[i] == pattern[i % pattern.size()]) i++;
        return i;
      });
  if (walk.outcome.succeeded()) expect(walk, !same);
}

void checksum(Walk& walk, bool copies) {
  uint32_t crc = walk.descriptor.crc_seed;
  if (has_flag(walk.descriptor, kCrcFlagReadSeed)) {
    const auto seed = walk.view.all(walk.descriptor.seed_addr, sizeof(crc), Access::kRead);
    if (seed.empty()) {
      walk.fault(walk.descriptor.seed_addr, Access::kRead);
      return;
    }
    std::memcpy(&crc, seed.data(), sizeof(crc));
  }
  const auto add = [&crc](std::span<const uint8_t> piece) {
    crc = crc32c(crc, piece.data(), piece.size());
    return piece.size();
  };
  if (copies)
    walk.each_pair(Access::kWrite, [&](const uint8_t* from, uint8_t* to, uint64_t bytes) {
      std::memmove(to, from, bytes);
      return add({to, bytes});
    });
  else
    walk.each(walk.descriptor.src_addr, Access::kRead, add);
  // Of what came before a fault, too: it is the seed of the rest.
  walk.outcome.crc = crc;
}

constexpr std::array<uint32_t, 256> crc_table() {
  constexpr uint32_t kCastagnoliReflected = 0x82f63b78;
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < table.size(); byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? kCastagnoliReflected : 0);
    table[byte] = crc;
  }
  return table;
}

}  // namespace

uint32_t crc32c(uint32_t seed, const uint8_t* data, uint64_t bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~seed;
  for (uint64_t i = 0; i < bytes; i++) crc = crc >> 8 ^ kTable[(crc ^ data[i]) & 0xff];
  return ~crc;
}

CompletionRecord record_of(const Outcome& outcome) {
  CompletionRecord record = {};
  record.status = outcome.status;
  record.result = outcome.result;
  record.bytes_completed = outcome.bytes_completed;
  record.fault_addr = outcome.fault_address;
  if (outcome.invalid_flags)
    record.invalid_flags = outcome.invalid_flags & 0xffffff;
  else
    record.crc_val = outcome.crc;
  return record;
}

Outcome execute(const Descriptor& descriptor, const GuestMemory& memory) {
  Walk walk(descriptor, memory);
  switch (descriptor.opcode) {
    case DSA_OPCODE_MEMMOVE:
      move(walk);
      break;
    case DSA_OPCODE_MEMFILL:
      fill(walk);
      break;
    case DSA_OPCODE_COMPARE:
      compare(walk);
      break;
    case DSA_OPCODE_COMPVAL:
      compare_pattern(walk);
      break;
    case DSA_OPCODE_CRCGEN:
      checksum(walk, false);
      break;
    case DSA_OPCODE_COPY_CRC:
      checksum(walk, true);
      break;
    case DSA_OPCODE_CFLUSH:
      // Memory is coherent here; what is not mapped faults all the same.
      walk.each(descriptor.dst_addr, Access::kRead,
                [](std::span<uint8_t> piece) { return piece.size(); });
      break;
    default:
      break;
  }
  return walk.outcome;
}

}  // namespace memsluice::dsa
