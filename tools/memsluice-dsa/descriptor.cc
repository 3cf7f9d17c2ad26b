// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/descriptor.h"

#include <algorithm>
#include <iterator>

#include "tools/memsluice-dsa/operations.h"

namespace memsluice::dsa {
namespace {

constexpr uint32_t kAnyFlags = IDXD_OP_FLAG_FENCE | IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR |
                               IDXD_OP_FLAG_RCI | IDXD_OP_FLAG_CRSTS | IDXD_OP_FLAG_CR_TCS |
                               IDXD_OP_FLAG_STORD;
constexpr uint32_t kReadFlags = kAnyFlags | IDXD_OP_FLAG_BOF | IDXD_OP_FLAG_ADDR1_TCS;
constexpr uint32_t kWriteFlags =
    IDXD_OP_FLAG_CC | IDXD_OP_FLAG_ADDR2_TCS | IDXD_OP_FLAG_DRDBK | IDXD_OP_FLAG_DSTS;
constexpr size_t kRecordAlignment = 32;
constexpr size_t kListAlignment = 64;
constexpr uint32_t kBatchMin = 2;

enum class Use { kNone, kValue, kAddress };

// What is particular to an operation. Bytes of the descriptor that it leaves unused have to be 0.
struct Rules {
  unsigned opcode;
  uint32_t flags;
  Use source, destination;
  bool uses_size;
  uint32_t specific;  // a bit for each of the 24 bytes at its end that it uses
  bool in_batch;
};

// Of a batch the list of descriptors stands in the place of the source; a pattern stands there when
// it is written, and in the place of the destination when it is compared with.
constexpr Rules kRules[] = {
    {DSA_OPCODE_NOOP, kAnyFlags, Use::kNone, Use::kNone, false, 0, true},
    {DSA_OPCODE_BATCH, (kAnyFlags & ~IDXD_OP_FLAG_FENCE) | IDXD_OP_FLAG_ADDR1_TCS, Use::kAddress,
     Use::kNone, true, 0, false},
    {DSA_OPCODE_DRAIN, kAnyFlags & ~IDXD_OP_FLAG_FENCE, Use::kNone, Use::kNone, false, 0, false},
    {DSA_OPCODE_MEMMOVE, kReadFlags | kWriteFlags, Use::kAddress, Use::kAddress, true, 0, true},
    {DSA_OPCODE_MEMFILL, kAnyFlags | IDXD_OP_FLAG_BOF | kWriteFlags, Use::kValue, Use::kAddress,
     true, 0, true},
    {DSA_OPCODE_COMPARE, kReadFlags | IDXD_OP_FLAG_ADDR2_TCS | IDXD_OP_FLAG_CR, Use::kAddress,
     Use::kAddress, true, 0x1, true},
    {DSA_OPCODE_COMPVAL, kReadFlags | IDXD_OP_FLAG_CR, Use::kAddress, Use::kValue, true, 0x1, true},
    {DSA_OPCODE_CRCGEN, kReadFlags | kCrcFlagReadSeed, Use::kAddress, Use::kNone, true, 0xff0f,
     true},
    {DSA_OPCODE_COPY_CRC, kReadFlags | kWriteFlags | kCrcFlagReadSeed, Use::kAddress, Use::kAddress,
     true, 0xff0f, true},
    {DSA_OPCODE_CFLUSH, kAnyFlags | IDXD_OP_FLAG_BOF | IDXD_OP_FLAG_CC | IDXD_OP_FLAG_ADDR2_TCS,
     Use::kNone, Use::kAddress, true, 0, true},
};

const Rules* rules_of(unsigned opcode) {
  const auto* found = std::find_if(std::begin(kRules), std::end(kRules),
                                   [&](const Rules& rules) { return rules.opcode == opcode; });
  return found == std::end(kRules) ? nullptr : found;
}

uint32_t invalid_flags(const Descriptor& descriptor, const Rules& rules, const Limits& limits,
                       bool in_batch) {
  const uint32_t flags = descriptor.flags;
  uint32_t invalid = flags & ~rules.flags;
  if (!limits.block_on_fault) invalid |= flags & IDXD_OP_FLAG_BOF;
  if (!in_batch) invalid |= flags & IDXD_OP_FLAG_FENCE;
  if (!(flags & IDXD_OP_FLAG_CRAV)) invalid |= flags & (IDXD_OP_FLAG_RCR | IDXD_OP_FLAG_CRSTS);
  return invalid;
}

bool uses_reserved(const Descriptor& descriptor, const Rules& rules) {
  if (descriptor.rsvd || descriptor.rsvd1) return true;
  if (rules.source == Use::kNone && descriptor.src_addr) return true;
  if (rules.destination == Use::kNone && descriptor.dst_addr) return true;
  if (!rules.uses_size && descriptor.xfer_size) return true;
  for (size_t i = 0; i < sizeof(descriptor.op_specific); i++)
    if (descriptor.op_specific[i] && !(rules.specific >> i & 1)) return true;
  return false;
}

uint8_t bad_size(const Descriptor& descriptor, const Limits& limits) {
  if (descriptor.opcode == DSA_OPCODE_BATCH) {
    if (descriptor.desc_list_addr % kListAlignment) return DSA_COMP_DESCLIST_ALIGN;
    const bool good =
        descriptor.desc_count >= kBatchMin && descriptor.desc_count <= limits.max_batch;
    return good ? 0 : DSA_COMP_DESC_CNT_ERANGE;
  }
  if (descriptor.xfer_size == 0 || descriptor.xfer_size > limits.max_transfer_bytes)
    return DSA_COMP_XFER_ERANGE;
  const uint64_t source = descriptor.src_addr, destination = descriptor.dst_addr;
  if (descriptor.opcode == DSA_OPCODE_COPY_CRC &&
      (source < destination ? destination - source : source - destination) < descriptor.xfer_size)
    return DSA_COMP_OVERLAP_BUFFERS;
  return 0;
}

}  // namespace

Operations supported_operations() {
  Operations operations = {};
  for (const Rules& rules : kRules) operations[rules.opcode / 64] |= 1ULL << rules.opcode % 64;
  return operations;
}

bool has_operation(const Operations& operations, unsigned opcode) {
  return operations[opcode / 64 % operations.size()] >> opcode % 64 & 1;
}

bool touches(const Descriptor& descriptor, uint64_t address) {
  const Rules* rules = rules_of(descriptor.opcode);
  if (!rules) return false;
  uint64_t bytes = descriptor.xfer_size;
  if (descriptor.opcode == DSA_OPCODE_BATCH) bytes *= sizeof(descriptor);
  const auto has = [&](Use use, uint64_t begin) {
    return use == Use::kAddress && address - begin < bytes;
  };
  return has(rules->source, descriptor.src_addr) || has(rules->destination, descriptor.dst_addr);
}

Refusal check_descriptor(const Descriptor& descriptor, const Limits& limits, bool in_batch) {
  const Rules* rules = rules_of(descriptor.opcode);
  if (!rules || !has_operation(limits.operations, descriptor.opcode) ||
      (in_batch && !rules->in_batch))
    return {DSA_COMP_BAD_OPCODE};
  if (const uint32_t flags = invalid_flags(descriptor, *rules, limits, in_batch))
    return {DSA_COMP_INVALID_FLAGS, flags};
  if (uses_reserved(descriptor, *rules)) return {DSA_COMP_NOZERO_RESERVE};
  if (has_flag(descriptor, IDXD_OP_FLAG_CRAV) && descriptor.completion_addr % kRecordAlignment)
    return {DSA_COMP_CRA_ALIGN};
  if (has_flag(descriptor, IDXD_OP_FLAG_RCI) &&
      (descriptor.int_handle == 0 || descriptor.int_handle >= limits.vectors))
    return {DSA_COMP_INT_HANDLE_INVAL};
  return {rules->uses_size ? bad_size(descriptor, limits) : uint8_t{0}};
}

}  // namespace memsluice::dsa
