// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/operations.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "tools/memsluice-dsa/test_memory.h"

namespace memsluice::dsa {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kSource = 0x10000, kDestination = 0x20000, kElsewhere = 0x30000;
constexpr uint64_t kPage = 4096;

Descriptor describe(dsa_opcode opcode, uint64_t source, uint64_t destination, uint32_t bytes,
                    uint32_t flags = 0) {
  Descriptor descriptor = {};
  descriptor.opcode = static_cast<uint8_t>(opcode);
  descriptor.flags = flags & 0xffffff;
  descriptor.src_addr = source;
  descriptor.dst_addr = destination;
  descriptor.xfer_size = bytes;
  return descriptor;
}

// Bytes that differ from their neighbours, and from those a page further.
void paint(uint8_t* data, size_t bytes, unsigned seed = 1) {
  for (size_t i = 0; i < bytes; i++) data[i] = static_cast<uint8_t>(seed + i * 7 + i / 251 * 13);
}

Bytes painted(size_t bytes, unsigned seed = 1) {
  Bytes data(bytes);
  paint(data.data(), bytes, seed);
  return data;
}

Bytes copy_of(const uint8_t* data, size_t bytes) {
  return {data, data + bytes};
}

bool all_zero(const uint8_t* data, size_t bytes) {
  return std::all_of(data, data + bytes, [](uint8_t byte) { return byte == 0; });
}

class OperationsTest : public testing::Test {
 protected:
  Outcome run(const Descriptor& descriptor) { return execute(descriptor, memory_.memory()); }
  Outcome run(dsa_opcode opcode, uint64_t source, uint64_t destination, uint32_t bytes,
              uint32_t flags = 0) {
    return run(describe(opcode, source, destination, bytes, flags));
  }

  TestMemory memory_;
};

void expect_fault(const Outcome& outcome, uint8_t status, uint64_t address, uint32_t completed) {
  EXPECT_EQ(outcome.status, status);
  EXPECT_EQ(outcome.fault_address, address);
  EXPECT_EQ(outcome.bytes_completed, completed);
  EXPECT_FALSE(outcome.succeeded());
}

void expect_success(const Outcome& outcome, uint32_t bytes, uint8_t result = 0) {
  EXPECT_EQ(outcome.status, DSA_COMP_SUCCESS);
  EXPECT_EQ(outcome.bytes_completed, bytes);
  EXPECT_EQ(outcome.result, result);
  EXPECT_EQ(outcome.fault_address, 0u);
}

TEST_F(OperationsTest, NothingToDoIsDone) {
  expect_success(run(DSA_OPCODE_NOOP, 0, 0, 0), 0);
  expect_success(run(DSA_OPCODE_DRAIN, 0, 0, 0), 0);
}

TEST_F(OperationsTest, MovesEveryByteAndNoOther) {
  uint8_t* source = memory_.add(kSource, kPage);
  uint8_t* destination = memory_.add(kDestination, kPage);
  paint(source, kPage);
  expect_success(run(DSA_OPCODE_MEMMOVE, kSource + 3, kDestination + 5, 1001), 1001);
  EXPECT_TRUE(std::equal(source + 3, source + 3 + 1001, destination + 5));
  EXPECT_TRUE(all_zero(destination, 5));
  EXPECT_TRUE(all_zero(destination + 5 + 1001, kPage - 5 - 1001));
  EXPECT_EQ(copy_of(source, kPage), painted(kPage));
}

TEST_F(OperationsTest, MovesOneByte) {
  uint8_t* data = memory_.add(kSource, kPage);
  data[7] = 0xab;
  expect_success(run(DSA_OPCODE_MEMMOVE, kSource + 7, kSource + 4095, 1), 1);
  EXPECT_EQ(data[4095], 0xab);
}

TEST_F(OperationsTest, MovesAcrossMappingsThatEndAtDifferentPlaces) {
  uint8_t* first = memory_.add(kSource, kPage);
  uint8_t* second = memory_.add(kSource + kPage, 2 * kPage);
  uint8_t* third = memory_.add(kDestination, 2 * kPage);
  uint8_t* fourth = memory_.add(kDestination + 2 * kPage, kPage);
  const Bytes data = painted(3 * kPage);
  std::memcpy(first, data.data(), kPage);
  std::memcpy(second, data.data() + kPage, 2 * kPage);
  expect_success(run(DSA_OPCODE_MEMMOVE, kSource, kDestination, 3 * kPage), 3 * kPage);
  EXPECT_TRUE(std::equal(third, third + 2 * kPage, data.begin()));
  EXPECT_TRUE(std::equal(fourth, fourth + kPage, data.begin() + 2 * kPage));
}

TEST_F(OperationsTest, MovesForwardWhenTheDestinationIsBehind) {
  uint8_t* data = memory_.add(kSource, kPage);
  paint(data, kPage);
  Bytes expected = painted(kPage);
  std::memmove(&expected[100], &expected[101], 3000);
  expect_success(run(DSA_OPCODE_MEMMOVE, kSource + 101, kSource + 100, 3000), 3000);
  EXPECT_EQ(copy_of(data, kPage), expected);
}

TEST_F(OperationsTest, MovesBackwardWhenTheDestinationIsAhead) {
  uint8_t* data = memory_.add(kSource, kPage);
  paint(data, kPage);
  Bytes expected = painted(kPage);
  std::memmove(&expected[101], &expected[100], 3000);
  expect_success(run(DSA_OPCODE_MEMMOVE, kSource + 100, kSource + 101, 3000), 3000, 1);
  EXPECT_EQ(copy_of(data, kPage), expected);
}

TEST_F(OperationsTest, MovesForwardWhenTheDestinationBeginsWhereTheSourceEnds) {
  uint8_t* data = memory_.add(kSource, kPage);
  paint(data, 100);
  expect_success(run(DSA_OPCODE_MEMMOVE, kSource, kSource + 100, 100), 100, 0);
  EXPECT_EQ(copy_of(data + 100, 100), painted(100));
}

TEST_F(OperationsTest, MovesWhatIsAlreadyThere) {
  uint8_t* data = memory_.add(kSource, kPage);
  paint(data, kPage);
  expect_success(run(DSA_OPCODE_MEMMOVE, kSource + 8, kSource + 8, 4000), 4000);
  EXPECT_EQ(copy_of(data, kPage), painted(kPage));
}

TEST_F(OperationsTest, MovesBackwardAcrossMappings) {
  uint8_t* first = memory_.add(kSource, kPage);
  uint8_t* second = memory_.add(kSource + kPage, kPage);
  Bytes expected = painted(2 * kPage);
  std::memcpy(first, expected.data(), kPage);
  std::memcpy(second, expected.data() + kPage, kPage);
  std::memmove(&expected[1500], &expected[500], 6000);
  expect_success(run(DSA_OPCODE_MEMMOVE, kSource + 500, kSource + 1500, 6000), 6000, 1);
  EXPECT_TRUE(std::equal(first, first + kPage, expected.begin()));
  EXPECT_TRUE(std::equal(second, second + kPage, expected.begin() + kPage));
}

// Adjacent mappings of sizes that are nobody's multiple, and what they look like to a guest.
class Patchwork {
 public:
  static constexpr size_t kBytes = 2000 + 96 + 4096 + 1 + 3007;

  Patchwork() {
    for (const size_t bytes : {2000, 96, 4096, 1, 3007}) {
      parts_.emplace_back(memory_.add(kSource + at_, bytes), bytes);
      at_ += bytes;
    }
  }

  void write(const Bytes& data) {
    size_t at = 0;
    for (const auto& [part, bytes] : parts_) {
      std::memcpy(part, &data[at], bytes);
      at += bytes;
    }
  }
  Bytes read() const {
    Bytes data;
    for (const auto& [part, bytes] : parts_) data.insert(data.end(), part, part + bytes);
    return data;
  }
  GuestMemory& memory() { return memory_.memory(); }

 private:
  TestMemory memory_;
  std::vector<std::pair<uint8_t*, size_t>> parts_;
  uint64_t at_ = 0;
};

struct Range {
  size_t begin, bytes;
};

Range any_range() {
  const auto begin = *rc::gen::inRange<size_t>(0, Patchwork::kBytes);
  return {begin, *rc::gen::inRange<size_t>(1, Patchwork::kBytes - begin + 1)};
}

RC_GTEST_PROP(OperationsAcrossMappings, MoveAsMemmoveDoes, ()) {
  Patchwork patchwork;
  Bytes expected = painted(Patchwork::kBytes);
  patchwork.write(expected);
  const auto [source, most] = any_range();
  const auto destination = *rc::gen::inRange<size_t>(0, Patchwork::kBytes);
  const size_t bytes = std::min(most, Patchwork::kBytes - destination);
  std::memmove(&expected[destination], &expected[source], bytes);
  const Outcome outcome = execute(describe(DSA_OPCODE_MEMMOVE, kSource + source,
                                           kSource + destination, static_cast<uint32_t>(bytes)),
                                  patchwork.memory());
  RC_ASSERT(outcome.succeeded());
  RC_ASSERT(outcome.bytes_completed == bytes);
  RC_ASSERT(patchwork.read() == expected);
}

RC_GTEST_PROP(OperationsAcrossMappings, FillWithAPatternThatGoesOn, (uint64_t pattern)) {
  Patchwork patchwork;
  Bytes expected = painted(Patchwork::kBytes);
  patchwork.write(expected);
  const auto [begin, bytes] = any_range();
  for (size_t i = 0; i < bytes; i++)
    expected[begin + i] = static_cast<uint8_t>(pattern >> i % 8 * 8);
  Descriptor descriptor =
      describe(DSA_OPCODE_MEMFILL, 0, kSource + begin, static_cast<uint32_t>(bytes));
  descriptor.pattern = pattern;
  const Outcome outcome = execute(descriptor, patchwork.memory());
  RC_ASSERT(outcome.succeeded());
  RC_ASSERT(outcome.bytes_completed == bytes);
  RC_ASSERT(patchwork.read() == expected);
  descriptor.opcode = DSA_OPCODE_COMPVAL;
  descriptor.src_addr = kSource + begin;
  descriptor.comp_pattern = pattern;
  RC_ASSERT(execute(descriptor, patchwork.memory()).result == 0);
}

RC_GTEST_PROP(OperationsAcrossMappings, SumUpAsOnePieceDoes, (uint32_t seed)) {
  Patchwork patchwork;
  const Bytes data = painted(Patchwork::kBytes);
  patchwork.write(data);
  const auto [begin, bytes] = any_range();
  Descriptor descriptor =
      describe(DSA_OPCODE_CRCGEN, kSource + begin, 0, static_cast<uint32_t>(bytes));
  descriptor.crc_seed = seed;
  const Outcome outcome = execute(descriptor, patchwork.memory());
  RC_ASSERT(outcome.succeeded());
  RC_ASSERT(outcome.crc == crc32c(seed, &data[begin], bytes));
}

TEST_F(OperationsTest, FillWithEightBytesAgainAndAgain) {
  uint8_t* data = memory_.add(kDestination, kPage);
  Descriptor descriptor = describe(DSA_OPCODE_MEMFILL, 0, kDestination + 3, 19);
  descriptor.pattern = 0x8877665544332211;
  expect_success(run(descriptor), 19);
  EXPECT_EQ(copy_of(data, 24),
            (Bytes{0,    0,    0,    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x11,
                   0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x11, 0x22, 0x33, 0,    0}));
}

TEST_F(OperationsTest, FillsOneByteWithTheFirstOfThePattern) {
  uint8_t* data = memory_.add(kDestination, kPage);
  Descriptor descriptor = describe(DSA_OPCODE_MEMFILL, 0, kDestination, 1);
  descriptor.pattern = 0x8877665544332211;
  expect_success(run(descriptor), 1);
  EXPECT_EQ(data[0], 0x11);
  EXPECT_EQ(data[1], 0);
}

TEST_F(OperationsTest, FillsOverTwoMappingsAsIfTheyWereOne) {
  uint8_t* first = memory_.add(kDestination, kPage);
  uint8_t* second = memory_.add(kDestination + kPage, kPage);
  Descriptor descriptor = describe(DSA_OPCODE_MEMFILL, 0, kDestination + kPage - 3, 8);
  descriptor.pattern = 0x8877665544332211;
  expect_success(run(descriptor), 8);
  EXPECT_EQ(copy_of(first + kPage - 4, 4), (Bytes{0, 0x11, 0x22, 0x33}));
  EXPECT_EQ(copy_of(second, 6), (Bytes{0x44, 0x55, 0x66, 0x77, 0x88, 0}));
}

class Comparisons : public OperationsTest {
 protected:
  Comparisons() : first_(memory_.add(kSource, kPage)), second_(memory_.add(kDestination, kPage)) {
    paint(first_, kPage);
    paint(second_, kPage);
  }
  Outcome compare(uint32_t bytes, uint32_t flags = 0, uint8_t expected = 0) {
    Descriptor descriptor = describe(DSA_OPCODE_COMPARE, kSource, kDestination, bytes, flags);
    descriptor.expected_res = expected;
    return run(descriptor);
  }

  uint8_t* first_;
  uint8_t* second_;
};

TEST_F(Comparisons, OfEqualBytesResultInZero) {
  expect_success(compare(kPage), kPage, 0);
}

TEST_F(Comparisons, TellWhereTheFirstDifferenceIs) {
  for (const uint32_t at : {4095, 2000, 1, 0}) {
    second_[at] ^= 0x80;
    expect_success(compare(kPage), at, 1);
  }
}

TEST_F(Comparisons, DoNotLookBeyondTheirEnd) {
  second_[100] ^= 1;
  expect_success(compare(100), 100, 0);
  expect_success(compare(101), 100, 1);
}

TEST_F(Comparisons, SucceedOtherwiseThanExpected) {
  EXPECT_EQ(compare(kPage, IDXD_OP_FLAG_CR, 0).status, DSA_COMP_SUCCESS);
  EXPECT_EQ(compare(kPage, IDXD_OP_FLAG_CR, 1).status, DSA_COMP_SUCCESS_PRED);
  second_[9] ^= 1;
  const Outcome differs = compare(kPage, IDXD_OP_FLAG_CR, 0);
  EXPECT_EQ(differs.status, DSA_COMP_SUCCESS_PRED);
  EXPECT_EQ(differs.result, 1);
  EXPECT_EQ(differs.bytes_completed, 9u);
  EXPECT_EQ(compare(kPage, IDXD_OP_FLAG_CR, 1).status, DSA_COMP_SUCCESS);
}

TEST_F(Comparisons, ExpectNothingUnlessTold) {
  EXPECT_EQ(compare(kPage, 0, 1).status, DSA_COMP_SUCCESS);
}

TEST_F(Comparisons, GoOnInTheNextMapping) {
  uint8_t* more_first = memory_.add(kSource + kPage, kPage);
  uint8_t* more_second = memory_.add(kDestination + kPage, kPage);
  expect_success(compare(2 * kPage), 2 * kPage, 0);
  more_first[17] = 1;
  expect_success(compare(2 * kPage), kPage + 17, 1);
  more_second[17] = 1;
  expect_success(compare(2 * kPage), 2 * kPage, 0);
}

TEST_F(Comparisons, FaultWhereOneOfTheTwoEnds) {
  memory_.add(kSource + kPage, kPage);
  expect_fault(compare(kPage + 1), DSA_COMP_PAGE_FAULT_NOBOF, kDestination + kPage, kPage);
  const Outcome expected_same = compare(kPage + 1, IDXD_OP_FLAG_CR, 0);
  expect_fault(expected_same, DSA_COMP_PAGE_FAULT_NOBOF, kDestination + kPage, kPage);
  EXPECT_EQ(expected_same.result, 0) << "no difference was found yet";
}

TEST_F(Comparisons, NeedNotReachWhatComesAfterADifference) {
  second_[4095] ^= 1;
  expect_success(compare(2 * kPage), 4095, 1);
}

class PatternComparisons : public OperationsTest {
 protected:
  static constexpr uint64_t kPattern = 0x8877665544332211;

  PatternComparisons() : data_(memory_.add(kSource, kPage)) {
    for (size_t i = 0; i < kPage; i++) data_[i] = static_cast<uint8_t>(kPattern >> i % 8 * 8);
  }
  Outcome compare(uint64_t offset, uint32_t bytes, uint32_t flags = 0, uint8_t expected = 0,
                  uint64_t pattern = kPattern) {
    Descriptor descriptor = describe(DSA_OPCODE_COMPVAL, kSource + offset, 0, bytes, flags);
    descriptor.comp_pattern = pattern;
    descriptor.expected_res = expected;
    return run(descriptor);
  }

  uint8_t* data_;
};

TEST_F(PatternComparisons, OfEqualBytesResultInZero) {
  expect_success(compare(0, kPage), kPage, 0);
  expect_success(compare(8, 13), 13, 0);
}

TEST_F(PatternComparisons, BeginTheirPatternWhereTheyBegin) {
  expect_success(compare(1, 8), 0, 1);
  expect_success(compare(1, 8, 0, 0, 0x1188776655443322), 8, 0);
}

TEST_F(PatternComparisons, TellWhereTheFirstDifferenceIs) {
  for (const uint32_t at : {4095, 2000, 1, 0}) {
    data_[at] ^= 0x80;
    expect_success(compare(0, kPage), at, 1);
  }
}

TEST_F(PatternComparisons, SucceedOtherwiseThanExpected) {
  EXPECT_EQ(compare(0, kPage, IDXD_OP_FLAG_CR, 0).status, DSA_COMP_SUCCESS);
  EXPECT_EQ(compare(0, kPage, IDXD_OP_FLAG_CR, 1).status, DSA_COMP_SUCCESS_PRED);
  data_[9] ^= 1;
  const Outcome differs = compare(0, kPage, IDXD_OP_FLAG_CR, 0);
  EXPECT_EQ(differs.status, DSA_COMP_SUCCESS_PRED);
  EXPECT_EQ(differs.result, 1);
  EXPECT_EQ(differs.bytes_completed, 9u);
  EXPECT_EQ(compare(0, kPage, IDXD_OP_FLAG_CR, 1).status, DSA_COMP_SUCCESS);
}

TEST_F(PatternComparisons, GoOnInTheNextMapping) {
  uint8_t* more = memory_.add(kSource + kPage, kPage);
  expect_success(compare(0, kPage + 8), kPage, 1);
  std::memcpy(more, data_, 8);
  expect_success(compare(0, kPage + 8), kPage + 8, 0);
  expect_success(compare(4, kPage + 4, 0, 0, kPattern >> 32 | kPattern << 32), kPage + 4, 0);
}

TEST_F(PatternComparisons, FaultWhereTheSourceEnds) {
  expect_fault(compare(0, kPage + 1), DSA_COMP_PAGE_FAULT_NOBOF, kSource + kPage, kPage);
  const Outcome expected_same = compare(0, kPage + 1, IDXD_OP_FLAG_CR, 0);
  expect_fault(expected_same, DSA_COMP_PAGE_FAULT_NOBOF, kSource + kPage, kPage);
  EXPECT_EQ(expected_same.result, 0) << "no difference was found yet";
}

// A fault told here would have the driver go on behind the difference, and find none.
TEST_F(PatternComparisons, NeedNotReachWhatComesAfterADifference) {
  data_[4000] ^= 1;
  expect_success(compare(0, 2 * kPage), 4000, 1);
}

constexpr std::string_view kDigits = "123456789";
constexpr uint32_t kDigitsCrc = 0xe3069283;

uint32_t crc_of(uint32_t seed, std::string_view text) {
  return crc32c(seed, reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

TEST(Crc32c, OfKnownBytes) {
  EXPECT_EQ(crc_of(0, kDigits), kDigitsCrc);
  EXPECT_EQ(crc_of(0, ""), 0u);
  // RFC 3720, B.4.
  Bytes bytes(32);
  EXPECT_EQ(crc32c(0, bytes.data(), bytes.size()), 0x8a9136aau);
  std::fill(bytes.begin(), bytes.end(), uint8_t{0xff});
  EXPECT_EQ(crc32c(0, bytes.data(), bytes.size()), 0x62a8ab43u);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  EXPECT_EQ(crc32c(0, bytes.data(), bytes.size()), 0x46dd794eu);
}

TEST(Crc32c, OfPiecesIsThatOfTheWhole) {
  for (size_t i = 0; i <= kDigits.size(); i++)
    EXPECT_EQ(crc_of(crc_of(0, kDigits.substr(0, i)), kDigits.substr(i)), kDigitsCrc) << i;
}

class Checksums : public OperationsTest {
 protected:
  Checksums() : source_(memory_.add(kSource, kPage)) {
    std::memcpy(source_, kDigits.data(), kDigits.size());
  }
  static Descriptor sum(uint32_t bytes, uint32_t seed = 0) {
    Descriptor descriptor = describe(DSA_OPCODE_CRCGEN, kSource, 0, bytes);
    descriptor.crc_seed = seed;
    return descriptor;
  }
  static Descriptor copy(uint32_t bytes, uint32_t seed = 0) {
    Descriptor descriptor = describe(DSA_OPCODE_COPY_CRC, kSource, kDestination, bytes);
    descriptor.crc_seed = seed;
    return descriptor;
  }

  uint8_t* source_;
};

TEST_F(Checksums, AreKnown) {
  const Outcome outcome = run(sum(9));
  expect_success(outcome, 9);
  EXPECT_EQ(outcome.crc, kDigitsCrc);
}

TEST_F(Checksums, GoOnFromASeed) {
  const Outcome begun = run(sum(4));
  Descriptor rest = sum(5, static_cast<uint32_t>(begun.crc));
  rest.src_addr = kSource + 4;
  EXPECT_EQ(run(rest).crc, kDigitsCrc);
}

TEST_F(Checksums, ReadTheirSeedFromMemory) {
  uint8_t* elsewhere = memory_.add(kElsewhere, kPage);
  const uint32_t seed = crc_of(0, kDigits.substr(0, 4));
  std::memcpy(elsewhere + 64, &seed, sizeof(seed));
  Descriptor rest = sum(5, 0x12345678);
  rest.src_addr = kSource + 4;
  rest.seed_addr = kElsewhere + 64;
  EXPECT_EQ(run(rest).crc, crc_of(0x12345678, kDigits.substr(4)));
  rest.flags = kCrcFlagReadSeed;
  EXPECT_EQ(run(rest).crc, kDigitsCrc);
}

TEST_F(Checksums, FaultAtASeedThatIsNotThere) {
  Descriptor descriptor = sum(9);
  descriptor.flags = kCrcFlagReadSeed;
  descriptor.seed_addr = kElsewhere;
  expect_fault(run(descriptor), DSA_COMP_PAGE_FAULT_NOBOF, kElsewhere, 0);
}

TEST_F(Checksums, AreToldOfWhatIsCopied) {
  uint8_t* destination = memory_.add(kDestination, kPage);
  const Outcome outcome = run(copy(9));
  expect_success(outcome, 9);
  EXPECT_EQ(outcome.crc, kDigitsCrc);
  EXPECT_EQ(copy_of(destination, 10), copy_of(source_, 10));
  EXPECT_EQ(run(copy(9, 7)).crc, crc_of(7, kDigits));
}

TEST_F(Checksums, OfCopiesReadTheirSeedFromMemory) {
  memory_.add(kDestination, kPage);
  uint8_t* elsewhere = memory_.add(kElsewhere, kPage);
  const uint32_t seed = 0xdeadbeef;
  std::memcpy(elsewhere, &seed, sizeof(seed));
  Descriptor descriptor = copy(9);
  descriptor.flags = kCrcFlagReadSeed;
  descriptor.seed_addr = kElsewhere;
  EXPECT_EQ(run(descriptor).crc, crc_of(seed, kDigits));
}

// Whoever goes on after a fault takes what the record says for the next seed.
TEST_F(Checksums, TellHowFarTheyCameBeforeAFault) {
  const Outcome outcome = run(sum(kPage + 1));
  expect_fault(outcome, DSA_COMP_PAGE_FAULT_NOBOF, kSource + kPage, kPage);
  EXPECT_EQ(outcome.crc, crc32c(0, source_, kPage));
}

TEST_F(Checksums, OfCopiesTellHowFarTheyCameBeforeAFault) {
  uint8_t* destination = memory_.add(kDestination, 9);
  const Outcome outcome = run(copy(10));
  expect_fault(outcome, DSA_COMP_PAGE_FAULT_NOBOF | DSA_COMP_STATUS_WRITE, kDestination + 9, 9);
  EXPECT_EQ(copy_of(destination, 9), copy_of(source_, 9));
  EXPECT_EQ(outcome.crc, kDigitsCrc);
}

TEST_F(OperationsTest, FlushWhatIsMapped) {
  uint8_t* data = memory_.add(kDestination, kPage, false);
  paint(data, kPage);
  expect_success(run(DSA_OPCODE_CFLUSH, 0, kDestination + 1, kPage - 1), kPage - 1);
  EXPECT_EQ(copy_of(data, kPage), painted(kPage));
  expect_fault(run(DSA_OPCODE_CFLUSH, 0, kDestination + 1, kPage), DSA_COMP_PAGE_FAULT_NOBOF,
               kDestination + kPage, kPage - 1);
}

class PageFaults : public OperationsTest {
 protected:
  static constexpr uint8_t kRead = DSA_COMP_PAGE_FAULT_NOBOF;
  static constexpr uint8_t kWrite = DSA_COMP_PAGE_FAULT_NOBOF | 0x80;
};

TEST_F(PageFaults, ReadingTellWhatWasDone) {
  uint8_t* source = memory_.add(kSource, kPage);
  uint8_t* destination = memory_.add(kDestination, 2 * kPage);
  paint(source, kPage);
  paint(destination, 2 * kPage, 99);
  expect_fault(run(DSA_OPCODE_MEMMOVE, kSource + 100, kDestination, kPage), kRead, kSource + kPage,
               kPage - 100);
  EXPECT_TRUE(std::equal(source + 100, source + kPage, destination));
  const Bytes before = painted(2 * kPage, 99);
  EXPECT_TRUE(std::equal(before.begin() + kPage - 100, before.end(), destination + kPage - 100));
}

TEST_F(PageFaults, WritingTellWhatWasDone) {
  uint8_t* source = memory_.add(kSource, 2 * kPage);
  uint8_t* destination = memory_.add(kDestination, kPage);
  paint(source, 2 * kPage);
  expect_fault(run(DSA_OPCODE_MEMMOVE, kSource, kDestination + 100, kPage), kWrite,
               kDestination + kPage, kPage - 100);
  EXPECT_TRUE(std::equal(source, source + kPage - 100, destination + 100));
  EXPECT_TRUE(all_zero(destination, 100));
}

TEST_F(PageFaults, AtTheFirstByteHaveDoneNothing) {
  uint8_t* destination = memory_.add(kDestination, kPage);
  expect_fault(run(DSA_OPCODE_MEMMOVE, kSource, kDestination, 64), kRead, kSource, 0);
  expect_fault(run(DSA_OPCODE_MEMMOVE, kDestination, kSource, 64), kWrite, kSource, 0);
  EXPECT_TRUE(all_zero(destination, kPage));
}

TEST_F(PageFaults, OfASourceComeBeforeThoseOfADestination) {
  expect_fault(run(DSA_OPCODE_MEMMOVE, kSource, kDestination, 64), kRead, kSource, 0);
}

TEST_F(PageFaults, SayWhetherSomebodyWouldHaveWaited) {
  memory_.add(kSource, kPage);
  expect_fault(run(DSA_OPCODE_MEMMOVE, kDestination, kSource, 64, IDXD_OP_FLAG_BOF),
               DSA_COMP_PAGE_FAULT_IR, kDestination, 0);
  expect_fault(run(DSA_OPCODE_MEMMOVE, kSource, kDestination, 64, IDXD_OP_FLAG_BOF),
               DSA_COMP_PAGE_FAULT_IR | 0x80, kDestination, 0);
}

TEST_F(PageFaults, OfBackwardMovesCountFromTheEnd) {
  uint8_t* data = memory_.add(kSource + kPage, kPage);
  paint(data, kPage);
  Bytes expected = painted(kPage);
  std::memmove(&expected[100], &expected[0], 1000);
  // What is before the source's mapping cannot be read.
  const Outcome outcome = run(DSA_OPCODE_MEMMOVE, kSource + kPage - 50, kSource + kPage + 50, 1050);
  expect_fault(outcome, kRead, kSource + kPage - 1, 1000);
  EXPECT_EQ(outcome.result, 1);
  EXPECT_EQ(copy_of(data, kPage), expected);
}

TEST_F(PageFaults, OfBackwardMovesTellOfTheDestinationToo) {
  uint8_t* data = memory_.add(kSource, kPage);
  paint(data, kPage);
  const Outcome outcome = run(DSA_OPCODE_MEMMOVE, kSource + 96, kSource + 196, 4000);
  expect_fault(outcome, kWrite, kSource + 96 + 4000 + 99, 0);
  EXPECT_EQ(outcome.result, 1);
  EXPECT_EQ(copy_of(data, kPage), painted(kPage));
}

TEST_F(PageFaults, OfReadOnlyMemoryAreThoseOfWrites) {
  uint8_t* source = memory_.add(kSource, kPage);
  uint8_t* destination = memory_.add(kDestination, kPage, false);
  paint(source, kPage);
  expect_fault(run(DSA_OPCODE_MEMMOVE, kSource, kDestination, 64), kWrite, kDestination, 0);
  expect_fault(run(DSA_OPCODE_MEMFILL, 0x1111, kDestination + 8, 64), kWrite, kDestination + 8, 0);
  expect_fault(run(DSA_OPCODE_COPY_CRC, kSource, kDestination, 64), kWrite, kDestination, 0);
  EXPECT_TRUE(all_zero(destination, kPage));
  expect_success(run(DSA_OPCODE_MEMMOVE, kDestination, kSource, 64), 64);
  EXPECT_TRUE(all_zero(source, 64));
}

TEST_F(PageFaults, StopAtTheReadOnlyPartOfADestination) {
  uint8_t* source = memory_.add(kSource, 2 * kPage);
  uint8_t* first = memory_.add(kDestination, kPage);
  uint8_t* second = memory_.add(kDestination + kPage, kPage, false);
  paint(source, 2 * kPage);
  expect_fault(run(DSA_OPCODE_MEMMOVE, kSource, kDestination, 2 * kPage), kWrite,
               kDestination + kPage, kPage);
  EXPECT_EQ(copy_of(first, kPage), copy_of(source, kPage));
  EXPECT_TRUE(all_zero(second, kPage));
}

TEST_F(PageFaults, OfFillsTellWhatWasDone) {
  uint8_t* data = memory_.add(kDestination, kPage);
  expect_fault(run(DSA_OPCODE_MEMFILL, 0x0101010101010101, kDestination + kPage - 5, 8), kWrite,
               kDestination + kPage, 5);
  EXPECT_EQ(copy_of(data + kPage - 6, 6), (Bytes{0, 1, 1, 1, 1, 1}));
}

TEST_F(PageFaults, OfRangesThatNoFileIsBehind) {
  memory_.add(kSource, kPage);
  ASSERT_TRUE(memory_.memory().map(kDestination, kPage, -1, 0, true).ok());
  expect_fault(run(DSA_OPCODE_MEMMOVE, kSource, kDestination + 16, 8), kWrite, kDestination + 16,
               0);
  expect_fault(run(DSA_OPCODE_MEMMOVE, kDestination + 16, kSource, 8), kRead, kDestination + 16, 0);
}

TEST(Outcome, HasSucceededByItsStatusOnly) {
  EXPECT_TRUE(Outcome().succeeded());
  EXPECT_FALSE(Outcome{.status = DSA_COMP_SUCCESS_PRED}.succeeded());
  EXPECT_FALSE(Outcome{.status = DSA_COMP_BAD_OPCODE}.succeeded());
}

}  // namespace
}  // namespace memsluice::dsa
