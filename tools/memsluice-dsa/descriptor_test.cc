// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/descriptor.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "tools/memsluice-dsa/operations.h"

namespace memsluice::dsa {
namespace {

constexpr uint64_t kSourceAddress = 0x10000, kDestinationAddress = 0x20000, kRecord = 0x30020;
constexpr uint32_t kSize = 4096;
constexpr uint32_t kFlags = 0xffffff;

Limits generous() {
  return {.operations = supported_operations(),
          .max_transfer_bytes = 1 << 20,
          .max_batch = 64,
          .block_on_fault = true,
          .vectors = 9};
}

// With everything that @opcode needs, and nothing more.
Descriptor well_formed(unsigned opcode) {
  Descriptor descriptor = {};
  descriptor.opcode = static_cast<uint8_t>(opcode);
  descriptor.flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
  descriptor.completion_addr = kRecord;
  switch (opcode) {
    case DSA_OPCODE_BATCH:
      descriptor.desc_list_addr = kSourceAddress;
      descriptor.desc_count = 2;
      break;
    case DSA_OPCODE_MEMMOVE:
    case DSA_OPCODE_MEMFILL:
    case DSA_OPCODE_COMPARE:
    case DSA_OPCODE_COMPVAL:
    case DSA_OPCODE_COPY_CRC:
      descriptor.src_addr = kSourceAddress;
      descriptor.dst_addr = kDestinationAddress;
      descriptor.xfer_size = kSize;
      break;
    case DSA_OPCODE_CRCGEN:
      descriptor.src_addr = kSourceAddress;
      descriptor.xfer_size = kSize;
      break;
    case DSA_OPCODE_CFLUSH:
      descriptor.dst_addr = kDestinationAddress;
      descriptor.xfer_size = kSize;
      break;
    default:
      break;
  }
  return descriptor;
}

Descriptor with_flags(unsigned opcode, uint32_t flags) {
  Descriptor descriptor = well_formed(opcode);
  descriptor.flags = (descriptor.flags | flags) & kFlags;
  return descriptor;
}

uint8_t status_of(const Descriptor& descriptor, bool in_batch = false,
                  const Limits& limits = generous()) {
  return check_descriptor(descriptor, limits, in_batch).status;
}

uint32_t invalid_flags_of(const Descriptor& descriptor, bool in_batch = false,
                          const Limits& limits = generous()) {
  const Refusal refusal = check_descriptor(descriptor, limits, in_batch);
  EXPECT_EQ(refusal.status, refusal.invalid_flags ? DSA_COMP_INVALID_FLAGS : 0);
  return refusal.invalid_flags;
}

const std::vector<unsigned> kAll = {DSA_OPCODE_NOOP,    DSA_OPCODE_BATCH,   DSA_OPCODE_DRAIN,
                                    DSA_OPCODE_MEMMOVE, DSA_OPCODE_MEMFILL, DSA_OPCODE_COMPARE,
                                    DSA_OPCODE_COMPVAL, DSA_OPCODE_CRCGEN,  DSA_OPCODE_COPY_CRC,
                                    DSA_OPCODE_CFLUSH};
const std::set<unsigned> kNotInBatches = {DSA_OPCODE_BATCH, DSA_OPCODE_DRAIN};
const std::vector<unsigned> kSized = {DSA_OPCODE_MEMMOVE, DSA_OPCODE_MEMFILL, DSA_OPCODE_COMPARE,
                                      DSA_OPCODE_COMPVAL, DSA_OPCODE_CRCGEN,  DSA_OPCODE_COPY_CRC,
                                      DSA_OPCODE_CFLUSH};

class EveryOperation : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Descriptor, EveryOperation, testing::ValuesIn(kAll),
                         testing::PrintToStringParamName());

TEST_P(EveryOperation, IsAcceptedWhenWellFormed) {
  EXPECT_EQ(status_of(well_formed(GetParam())), 0);
}

TEST_P(EveryOperation, IsAcceptedInABatchButForBatchesAndDrains) {
  EXPECT_EQ(status_of(well_formed(GetParam()), true),
            kNotInBatches.contains(GetParam()) ? DSA_COMP_BAD_OPCODE : 0);
}

TEST_P(EveryOperation, IsRefusedByAQueueThatDoesNotAllowIt) {
  Limits limits = generous();
  limits.operations[GetParam() / 64] &= ~(1ULL << GetParam() % 64);
  EXPECT_EQ(status_of(well_formed(GetParam()), false, limits), DSA_COMP_BAD_OPCODE);
}

TEST_P(EveryOperation, FencesInBatchesOnly) {
  const Descriptor descriptor = with_flags(GetParam(), IDXD_OP_FLAG_FENCE);
  EXPECT_EQ(invalid_flags_of(descriptor), IDXD_OP_FLAG_FENCE);
  if (!kNotInBatches.contains(GetParam())) {
    EXPECT_EQ(invalid_flags_of(descriptor, true), 0u);
  }
}

TEST_P(EveryOperation, MayInterruptAndOrderItsStores) {
  Descriptor descriptor = with_flags(
      GetParam(), IDXD_OP_FLAG_RCI | IDXD_OP_FLAG_STORD | IDXD_OP_FLAG_CRSTS | IDXD_OP_FLAG_CR_TCS);
  descriptor.int_handle = 1;
  EXPECT_EQ(invalid_flags_of(descriptor), 0u);
}

TEST_P(EveryOperation, HasNoReservedFlags) {
  for (const uint32_t flag : {0x40, IDXD_OP_FLAG_ADDR3_TCS, 0x20000, 0x40000, 0x80000, 0x100000,
                              0x200000, 0x400000, 0x800000})
    EXPECT_EQ(invalid_flags_of(with_flags(GetParam(), flag)), flag) << std::hex << flag;
}

TEST_P(EveryOperation, AsksForARecordOnlyWithAnAddress) {
  Descriptor descriptor = well_formed(GetParam());
  descriptor.flags = IDXD_OP_FLAG_RCR;
  EXPECT_EQ(invalid_flags_of(descriptor), IDXD_OP_FLAG_RCR);
  descriptor.flags = IDXD_OP_FLAG_RCR | IDXD_OP_FLAG_CRSTS;
  EXPECT_EQ(invalid_flags_of(descriptor), IDXD_OP_FLAG_RCR | IDXD_OP_FLAG_CRSTS);
  descriptor.flags = 0;
  EXPECT_EQ(invalid_flags_of(descriptor), 0u);
  descriptor.flags = IDXD_OP_FLAG_CRAV;
  EXPECT_EQ(invalid_flags_of(descriptor), 0u);
}

TEST_P(EveryOperation, HasItsRecordAligned) {
  Descriptor descriptor = well_formed(GetParam());
  for (const uint64_t off : {1, 8, 16, 31}) {
    descriptor.completion_addr = kRecord + off;
    EXPECT_EQ(status_of(descriptor), DSA_COMP_CRA_ALIGN) << off;
  }
  descriptor.flags = 0;
  EXPECT_EQ(status_of(descriptor), 0) << "there is no record";
}

TEST_P(EveryOperation, InterruptsByAHandleThatThereIs) {
  Descriptor descriptor = with_flags(GetParam(), IDXD_OP_FLAG_RCI);
  for (const auto& [handle, status] : {std::pair<uint16_t, uint8_t>{0, DSA_COMP_INT_HANDLE_INVAL},
                                       {1, 0},
                                       {8, 0},
                                       {9, DSA_COMP_INT_HANDLE_INVAL},
                                       {0xffff, DSA_COMP_INT_HANDLE_INVAL}}) {
    descriptor.int_handle = handle;
    EXPECT_EQ(status_of(descriptor), status) << handle;
  }
}

TEST_P(EveryOperation, LeavesWhatIsReservedZero) {
  Descriptor descriptor = well_formed(GetParam());
  descriptor.rsvd = 1;
  EXPECT_EQ(status_of(descriptor), DSA_COMP_NOZERO_RESERVE);
  descriptor = well_formed(GetParam());
  descriptor.rsvd1 = 0x8000;
  EXPECT_EQ(status_of(descriptor), DSA_COMP_NOZERO_RESERVE);
}

// Which of the 24 bytes at its end an operation uses.
bool uses_byte(unsigned opcode, size_t byte) {
  switch (opcode) {
    case DSA_OPCODE_COMPARE:
    case DSA_OPCODE_COMPVAL:
      return byte == 0;  // the expected result
    case DSA_OPCODE_CRCGEN:
    case DSA_OPCODE_COPY_CRC:
      return byte < 4 || (byte >= 8 && byte < 16);  // the seed, and the address of one
    default:
      return false;
  }
}

TEST_P(EveryOperation, LeavesTheBytesThatItDoesNotUseZero) {
  for (size_t i = 0; i < sizeof(Descriptor::op_specific); i++) {
    Descriptor descriptor = well_formed(GetParam());
    descriptor.op_specific[i] = 1;
    EXPECT_EQ(status_of(descriptor), uses_byte(GetParam(), i) ? 0 : DSA_COMP_NOZERO_RESERVE) << i;
  }
}

struct Unused {
  unsigned opcode;
  bool source, destination, size;
};

class UnusedFields : public testing::TestWithParam<Unused> {};
INSTANTIATE_TEST_SUITE_P(Descriptor, UnusedFields,
                         testing::Values(Unused{DSA_OPCODE_NOOP, true, true, true},
                                         Unused{DSA_OPCODE_DRAIN, true, true, true},
                                         Unused{DSA_OPCODE_BATCH, false, true, false},
                                         Unused{DSA_OPCODE_CRCGEN, false, true, false},
                                         Unused{DSA_OPCODE_CFLUSH, true, false, false}));

TEST_P(UnusedFields, AreZero) {
  Descriptor descriptor = well_formed(GetParam().opcode);
  if (GetParam().source) {
    descriptor.src_addr = 64;
    EXPECT_EQ(status_of(descriptor), DSA_COMP_NOZERO_RESERVE);
  }
  descriptor = well_formed(GetParam().opcode);
  if (GetParam().destination) {
    descriptor.dst_addr = 64;
    EXPECT_EQ(status_of(descriptor), DSA_COMP_NOZERO_RESERVE);
  }
  descriptor = well_formed(GetParam().opcode);
  if (GetParam().size) {
    descriptor.xfer_size = 64;
    EXPECT_EQ(status_of(descriptor), DSA_COMP_NOZERO_RESERVE);
  }
}

class EverySizedOperation : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Descriptor, EverySizedOperation, testing::ValuesIn(kSized),
                         testing::PrintToStringParamName());

TEST_P(EverySizedOperation, MovesFromOneByteToTheLimit) {
  const Limits limits = {.operations = supported_operations(), .max_transfer_bytes = 8192};
  Descriptor descriptor = well_formed(GetParam());
  for (const auto& [size, status] : {std::pair<uint32_t, uint8_t>{0, DSA_COMP_XFER_ERANGE},
                                     {1, 0},
                                     {8192, 0},
                                     {8193, DSA_COMP_XFER_ERANGE},
                                     {UINT32_MAX, DSA_COMP_XFER_ERANGE}}) {
    descriptor.xfer_size = size;
    EXPECT_EQ(status_of(descriptor, false, limits), status) << size;
    EXPECT_EQ(status_of(descriptor, true, limits), status) << size;
  }
}

TEST_P(EverySizedOperation, BlocksOnFaultsOnlyWhereTheQueueAllows) {
  const Descriptor descriptor = with_flags(GetParam(), IDXD_OP_FLAG_BOF);
  EXPECT_EQ(invalid_flags_of(descriptor), 0u);
  Limits limits = generous();
  limits.block_on_fault = false;
  EXPECT_EQ(invalid_flags_of(descriptor, false, limits), IDXD_OP_FLAG_BOF);
  EXPECT_EQ(status_of(well_formed(GetParam()), false, limits), 0);
}

TEST(Descriptor, BlocksOnNoFaultsWithoutDataToMove) {
  for (const unsigned opcode : {DSA_OPCODE_NOOP, DSA_OPCODE_BATCH, DSA_OPCODE_DRAIN})
    EXPECT_EQ(invalid_flags_of(with_flags(opcode, IDXD_OP_FLAG_BOF)), IDXD_OP_FLAG_BOF) << opcode;
}

TEST(Descriptor, KnowsNoOtherOperations) {
  const std::set<unsigned> known(kAll.begin(), kAll.end());
  Limits limits = generous();
  limits.operations.fill(~0ULL);
  for (unsigned opcode = 0; opcode < 256; opcode++) {
    EXPECT_EQ(has_operation(supported_operations(), opcode), known.contains(opcode)) << opcode;
    EXPECT_EQ(status_of(well_formed(opcode), false, limits),
              known.contains(opcode) ? 0 : DSA_COMP_BAD_OPCODE)
        << opcode;
  }
}

TEST(Descriptor, OperationsAreABitEach) {
  const Operations operations = supported_operations();
  // No-op, batch, drain, move, fill, both compares; checksums from 16 on; cache flush at 32.
  EXPECT_EQ(operations[0], 0x10003007fULL);
  EXPECT_EQ(operations[1] | operations[2] | operations[3], 0u);
}

TEST(Descriptor, TellsAllInvalidFlagsAtOnce) {
  Limits limits = generous();
  limits.block_on_fault = false;
  Descriptor descriptor = well_formed(DSA_OPCODE_MEMMOVE);
  descriptor.flags = IDXD_OP_FLAG_FENCE | IDXD_OP_FLAG_BOF | IDXD_OP_FLAG_RCR | IDXD_OP_FLAG_CR |
                     0x800000 | IDXD_OP_FLAG_CC;
  EXPECT_EQ(invalid_flags_of(descriptor, false, limits),
            IDXD_OP_FLAG_FENCE | IDXD_OP_FLAG_BOF | IDXD_OP_FLAG_RCR | IDXD_OP_FLAG_CR | 0x800000);
}

TEST(Descriptor, ChecksResultsOfComparisonsOnly) {
  for (const unsigned opcode : kAll) {
    const bool compares = opcode == DSA_OPCODE_COMPARE || opcode == DSA_OPCODE_COMPVAL;
    EXPECT_EQ(invalid_flags_of(with_flags(opcode, IDXD_OP_FLAG_CR)),
              compares ? 0u : IDXD_OP_FLAG_CR)
        << opcode;
  }
}

TEST(Descriptor, ReadsSeedsOfChecksumsOnly) {
  for (const unsigned opcode : kAll) {
    const bool sums = opcode == DSA_OPCODE_CRCGEN || opcode == DSA_OPCODE_COPY_CRC;
    EXPECT_EQ(invalid_flags_of(with_flags(opcode, kCrcFlagReadSeed)), sums ? 0u : kCrcFlagReadSeed)
        << opcode;
  }
}

TEST(Descriptor, SteersAndReadsBackWritesOnly) {
  const std::set<unsigned> writing = {DSA_OPCODE_MEMMOVE, DSA_OPCODE_MEMFILL, DSA_OPCODE_COPY_CRC};
  for (const unsigned opcode : kAll)
    for (const uint32_t flag : {IDXD_OP_FLAG_DRDBK, IDXD_OP_FLAG_DSTS})
      EXPECT_EQ(invalid_flags_of(with_flags(opcode, flag)), writing.contains(opcode) ? 0u : flag)
          << opcode;
}

// The device says in its general capabilities (bits 2 and 3) that it has the flag for writes and
// for flushes, where it tells a write-back from a flush.
TEST(Descriptor, ControlsTheCacheOfWritesAndFlushes) {
  const std::set<unsigned> controls = {DSA_OPCODE_MEMMOVE, DSA_OPCODE_MEMFILL, DSA_OPCODE_COPY_CRC,
                                       DSA_OPCODE_CFLUSH};
  for (const unsigned opcode : kAll)
    EXPECT_EQ(invalid_flags_of(with_flags(opcode, IDXD_OP_FLAG_CC)),
              controls.contains(opcode) ? 0u : IDXD_OP_FLAG_CC)
        << opcode;
}

TEST(Descriptor, ChoosesTheTrafficClassOfAddressesThatItHas) {
  for (const unsigned opcode : kAll) {
    const bool source = opcode == DSA_OPCODE_BATCH || opcode == DSA_OPCODE_MEMMOVE ||
                        opcode == DSA_OPCODE_COMPARE || opcode == DSA_OPCODE_COMPVAL ||
                        opcode == DSA_OPCODE_CRCGEN || opcode == DSA_OPCODE_COPY_CRC;
    const bool destination = opcode == DSA_OPCODE_MEMMOVE || opcode == DSA_OPCODE_MEMFILL ||
                             opcode == DSA_OPCODE_COMPARE || opcode == DSA_OPCODE_COPY_CRC ||
                             opcode == DSA_OPCODE_CFLUSH;
    EXPECT_EQ(invalid_flags_of(with_flags(opcode, IDXD_OP_FLAG_ADDR1_TCS)),
              source ? 0u : IDXD_OP_FLAG_ADDR1_TCS)
        << opcode;
    EXPECT_EQ(invalid_flags_of(with_flags(opcode, IDXD_OP_FLAG_ADDR2_TCS)),
              destination ? 0u : IDXD_OP_FLAG_ADDR2_TCS)
        << opcode;
  }
}

TEST(Descriptor, BatchesHaveAtLeastTwoAndNoMoreThanTheLimit) {
  Descriptor batch = well_formed(DSA_OPCODE_BATCH);
  for (const auto& [count, status] : {std::pair<uint32_t, uint8_t>{0, DSA_COMP_DESC_CNT_ERANGE},
                                      {1, DSA_COMP_DESC_CNT_ERANGE},
                                      {2, 0},
                                      {64, 0},
                                      {65, DSA_COMP_DESC_CNT_ERANGE},
                                      {UINT32_MAX, DSA_COMP_DESC_CNT_ERANGE}}) {
    batch.desc_count = count;
    EXPECT_EQ(status_of(batch), status) << count;
  }
}

TEST(Descriptor, BatchesAreNotLimitedByTheSizeOfTransfers) {
  Limits limits = generous();
  limits.max_transfer_bytes = 1;
  EXPECT_EQ(status_of(well_formed(DSA_OPCODE_BATCH), false, limits), 0);
}

TEST(Descriptor, ListsOfBatchesAreAligned) {
  Descriptor batch = well_formed(DSA_OPCODE_BATCH);
  for (const uint64_t off : {1, 32, 63}) {
    batch.desc_list_addr = kSourceAddress + off;
    EXPECT_EQ(status_of(batch), DSA_COMP_DESCLIST_ALIGN) << off;
  }
  batch.desc_list_addr = kSourceAddress + 64;
  EXPECT_EQ(status_of(batch), 0);
}

TEST(Descriptor, ACopyWithAChecksumDoesNotOverlap) {
  Descriptor copy = well_formed(DSA_OPCODE_COPY_CRC);
  for (const auto& [destination, status] :
       {std::pair<uint64_t, uint8_t>{kSourceAddress, DSA_COMP_OVERLAP_BUFFERS},
        {kSourceAddress + 1, DSA_COMP_OVERLAP_BUFFERS},
        {kSourceAddress + kSize - 1, DSA_COMP_OVERLAP_BUFFERS},
        {kSourceAddress + kSize, 0},
        {kSourceAddress - kSize + 1, DSA_COMP_OVERLAP_BUFFERS},
        {kSourceAddress - kSize, 0}}) {
    copy.dst_addr = destination;
    EXPECT_EQ(status_of(copy), status) << std::hex << destination;
  }
}

TEST(Descriptor, OtherOperationsMayOverlap) {
  for (const unsigned opcode : {DSA_OPCODE_MEMMOVE, DSA_OPCODE_COMPARE}) {
    Descriptor descriptor = well_formed(opcode);
    descriptor.dst_addr = kSourceAddress + 1;
    EXPECT_EQ(status_of(descriptor), 0) << opcode;
  }
}

TEST(Descriptor, FlagsAreTheFirstThingThatIsWrongAfterTheOperation) {
  Descriptor descriptor = with_flags(DSA_OPCODE_MEMMOVE, 0x40);
  descriptor.rsvd1 = 1;
  descriptor.xfer_size = 0;
  descriptor.completion_addr = 1;
  EXPECT_EQ(status_of(descriptor), DSA_COMP_INVALID_FLAGS);
  descriptor.opcode = 0xff;
  EXPECT_EQ(status_of(descriptor), DSA_COMP_BAD_OPCODE);
}

TEST(Descriptor, HasFlagLooksAtOneFlag) {
  Descriptor descriptor = {};
  descriptor.flags = IDXD_OP_FLAG_CRAV | 0x800000;
  EXPECT_TRUE(has_flag(descriptor, IDXD_OP_FLAG_CRAV));
  EXPECT_TRUE(has_flag(descriptor, 0x800000));
  EXPECT_FALSE(has_flag(descriptor, IDXD_OP_FLAG_RCR));
}

TEST_P(EveryOperation, TouchesTheAddressesThatItHas) {
  const std::set<unsigned> sources = {DSA_OPCODE_BATCH,   DSA_OPCODE_MEMMOVE, DSA_OPCODE_COMPARE,
                                      DSA_OPCODE_COMPVAL, DSA_OPCODE_CRCGEN,  DSA_OPCODE_COPY_CRC};
  const std::set<unsigned> destinations = {DSA_OPCODE_MEMMOVE, DSA_OPCODE_MEMFILL,
                                           DSA_OPCODE_COMPARE, DSA_OPCODE_COPY_CRC,
                                           DSA_OPCODE_CFLUSH};
  const Descriptor descriptor = well_formed(GetParam());
  EXPECT_EQ(touches(descriptor, kSourceAddress), sources.contains(GetParam()));
  EXPECT_EQ(touches(descriptor, kDestinationAddress), destinations.contains(GetParam()));
  EXPECT_FALSE(touches(descriptor, 0)) << "what it does not use is no address";
}

TEST(Descriptor, TouchesFromItsFirstByteToItsLast) {
  const Descriptor move = well_formed(DSA_OPCODE_MEMMOVE);
  for (const uint64_t begin : {kSourceAddress, kDestinationAddress}) {
    EXPECT_FALSE(touches(move, begin - 1));
    EXPECT_TRUE(touches(move, begin));
    EXPECT_TRUE(touches(move, begin + kSize - 1));
    EXPECT_FALSE(touches(move, begin + kSize));
  }
  EXPECT_FALSE(touches(move, kRecord));
}

TEST(Descriptor, OfABatchTouchesTheWholeList) {
  const Descriptor batch = well_formed(DSA_OPCODE_BATCH);
  EXPECT_TRUE(touches(batch, kSourceAddress + 2 * sizeof(Descriptor) - 1));
  EXPECT_FALSE(touches(batch, kSourceAddress + 2 * sizeof(Descriptor)));
}

TEST(Descriptor, OfAnUnknownOperationTouchesNothing) {
  Descriptor descriptor = well_formed(DSA_OPCODE_MEMMOVE);
  descriptor.opcode = 0xff;
  EXPECT_FALSE(touches(descriptor, kSourceAddress));
}

std::vector<uint8_t> any_bytes() {
  return *rc::gen::container<std::vector<uint8_t>>(sizeof(Descriptor),
                                                   rc::gen::arbitrary<uint8_t>());
}

void check_what_is_accepted(const Descriptor& descriptor, const Limits& limits, bool in_batch) {
  const Refusal refusal = check_descriptor(descriptor, limits, in_batch);
  RC_ASSERT((refusal.status == DSA_COMP_INVALID_FLAGS) == (refusal.invalid_flags != 0));
  RC_ASSERT((refusal.invalid_flags & ~descriptor.flags) == 0u);
  RC_CLASSIFY(refusal.status == 0, "accepted");
  if (refusal.status) return;
  RC_ASSERT(has_operation(limits.operations, descriptor.opcode));
  RC_ASSERT(!in_batch || !kNotInBatches.contains(descriptor.opcode));
  RC_ASSERT(in_batch || !has_flag(descriptor, IDXD_OP_FLAG_FENCE));
  RC_ASSERT(limits.block_on_fault || !has_flag(descriptor, IDXD_OP_FLAG_BOF));
  if (has_flag(descriptor, IDXD_OP_FLAG_RCR)) RC_ASSERT(has_flag(descriptor, IDXD_OP_FLAG_CRAV));
  if (has_flag(descriptor, IDXD_OP_FLAG_CRAV)) RC_ASSERT(descriptor.completion_addr % 32 == 0u);
  if (has_flag(descriptor, IDXD_OP_FLAG_RCI))
    RC_ASSERT(descriptor.int_handle > 0 && descriptor.int_handle < limits.vectors);
  if (descriptor.opcode == DSA_OPCODE_BATCH) {
    RC_ASSERT(descriptor.desc_list_addr % 64 == 0u);
    RC_ASSERT(descriptor.desc_count >= 2 && descriptor.desc_count <= limits.max_batch);
  } else if (descriptor.opcode != DSA_OPCODE_NOOP && descriptor.opcode != DSA_OPCODE_DRAIN) {
    RC_ASSERT(descriptor.xfer_size > 0 && descriptor.xfer_size <= limits.max_transfer_bytes);
  }
}

Limits any_limits() {
  Limits limits = generous();
  if (*rc::gen::inRange(0, 4) == 0)
    limits.operations = *rc::gen::arbitrary<std::array<uint64_t, 4>>();
  limits.max_transfer_bytes = uint64_t{1} << *rc::gen::inRange(0, 32);
  limits.max_batch = 1U << *rc::gen::inRange(0, 16);
  limits.block_on_fault = *rc::gen::arbitrary<bool>();
  limits.vectors = *rc::gen::inRange(0U, 66U);
  return limits;
}

RC_GTEST_PROP(Descriptor, AcceptedBytesKeepToTheLimits, (bool in_batch)) {
  Descriptor descriptor;
  std::memcpy(&descriptor, any_bytes().data(), sizeof(descriptor));
  check_what_is_accepted(descriptor, any_limits(), in_batch);
}

// Bytes at random are hardly ever accepted: many of these are.
RC_GTEST_PROP(Descriptor, AcceptedDescriptorsKeepToTheLimits, (bool in_batch)) {
  const Limits limits = any_limits();
  Descriptor descriptor = well_formed(*rc::gen::elementOf(kAll));
  if (descriptor.xfer_size) {
    const bool batch = descriptor.opcode == DSA_OPCODE_BATCH;
    const uint64_t limit = batch ? limits.max_batch : limits.max_transfer_bytes;
    descriptor.xfer_size = static_cast<uint32_t>(*rc::gen::inRange<uint64_t>(0, limit + 2));
  }
  descriptor.int_handle = *rc::gen::inRange<uint16_t>(0, 70);
  if (*rc::gen::arbitrary<bool>())
    descriptor.flags = (descriptor.flags ^ 1U << *rc::gen::inRange(0, 24)) & kFlags;
  if (*rc::gen::inRange(0, 4) == 0) {
    const auto at = *rc::gen::inRange<size_t>(0, sizeof(descriptor));
    const auto byte = *rc::gen::arbitrary<uint8_t>();
    std::memcpy(reinterpret_cast<uint8_t*>(&descriptor) + at, &byte, sizeof(byte));
  }
  check_what_is_accepted(descriptor, limits, in_batch);
}

}  // namespace
}  // namespace memsluice::dsa
