// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/statistics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace memsluice::dsa {
namespace {

TraceEntry entry(unsigned opcode, uint32_t bytes, uint8_t status = DSA_COMP_SUCCESS,
                 unsigned engine = 0) {
  TraceEntry entry{.engine = engine};
  entry.descriptor.opcode = static_cast<uint8_t>(opcode);
  entry.outcome.status = status;
  entry.outcome.bytes_completed = bytes;
  return entry;
}

TEST(Statistics, BeginAtNothing) {
  EXPECT_EQ(Statistics().to_json(), Json::parse(R"({
    "descriptors_by_opcode": {}, "descriptors_by_status": {}, "descriptors_by_engine": {},
    "submitted_by_queue": {}, "refused_by_queue": {}, "bytes": 0, "interrupts": 0,
    "interrupts_dropped": 0, "errors_without_record": 0})"));
  EXPECT_EQ(Statistics().trace_to_json(), Json::array());
}

TEST(Statistics, CountDescriptorsByWhatTheyWereAndHowTheyEnded) {
  Statistics statistics;
  statistics.ended(entry(DSA_OPCODE_MEMMOVE, 100));
  statistics.ended(entry(DSA_OPCODE_MEMMOVE, 7, 0x83, 3));
  statistics.ended(entry(DSA_OPCODE_CFLUSH, 0, DSA_COMP_BAD_OPCODE, 15));
  statistics.ended(entry(255, 0, 255, 15));
  const Json json = statistics.to_json();
  EXPECT_EQ(json["descriptors_by_opcode"], Json::parse(R"({"3": 2, "32": 1, "255": 1})"));
  EXPECT_EQ(json["descriptors_by_status"], Json::parse(R"({"1": 1, "131": 1, "16": 1, "255": 1})"));
  EXPECT_EQ(json["descriptors_by_engine"], Json::parse(R"({"0": 1, "3": 1, "15": 2})"));
}

TEST(Statistics, SumBytesButNotTheDescriptorsOfABatch) {
  Statistics statistics;
  statistics.ended(entry(DSA_OPCODE_MEMMOVE, UINT32_MAX));
  statistics.ended(entry(DSA_OPCODE_MEMFILL, UINT32_MAX));
  statistics.ended(entry(DSA_OPCODE_BATCH, 17));
  EXPECT_EQ(statistics.to_json()["bytes"], uint64_t{UINT32_MAX} * 2);
}

TEST(Statistics, CountWhatWasSubmittedByQueue) {
  Statistics statistics;
  statistics.submitted(0, true);
  statistics.submitted(63, true);
  statistics.submitted(63, true);
  statistics.submitted(63, false);
  const Json json = statistics.to_json();
  EXPECT_EQ(json["submitted_by_queue"], Json::parse(R"({"0": 1, "63": 2})"));
  EXPECT_EQ(json["refused_by_queue"], Json::parse(R"({"63": 1})"));
}

TEST(Statistics, CountInterruptsAndThoseThatWereDropped) {
  Statistics statistics;
  statistics.interrupted(false);
  statistics.interrupted(false);
  statistics.interrupted(true);
  EXPECT_EQ(statistics.to_json()["interrupts"], 2);
  EXPECT_EQ(statistics.to_json()["interrupts_dropped"], 1);
}

TEST(Statistics, CountErrorsThatNoRecordTellsOf) {
  Statistics statistics;
  statistics.failed_silently();
  EXPECT_EQ(statistics.to_json()["errors_without_record"], 1);
}

TEST(Statistics, CountWhatThreadsDoAtTheSameTime) {
  constexpr int kThreads = 4, kEach = 1000;
  Statistics statistics;
  statistics.trace(10);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; i++)
    threads.emplace_back([&statistics, i] {
      for (int n = 0; n < kEach; n++) {
        statistics.ended(entry(DSA_OPCODE_MEMMOVE, 2, DSA_COMP_SUCCESS, i));
        statistics.submitted(i, true);
        statistics.interrupted(false);
      }
    });
  for (std::thread& thread : threads) thread.join();
  const Json json = statistics.to_json();
  EXPECT_EQ(json["bytes"], 2 * kThreads * kEach);
  EXPECT_EQ(json["interrupts"], kThreads * kEach);
  EXPECT_EQ(json["descriptors_by_engine"],
            Json::parse(R"({"0": 1000, "1": 1000, "2": 1000, "3": 1000})"));
  EXPECT_EQ(json["submitted_by_queue"], json["descriptors_by_engine"]);
  EXPECT_EQ(statistics.trace_to_json().size(), 10u);
}

std::vector<unsigned> traced_sizes(const Statistics& statistics) {
  std::vector<unsigned> sizes;
  for (const Json& one : statistics.trace_to_json()) sizes.push_back(one["bytes_completed"]);
  return sizes;
}

TEST(Trace, IsNotKeptUnlessAskedFor) {
  Statistics statistics;
  statistics.ended(entry(DSA_OPCODE_MEMMOVE, 1));
  EXPECT_EQ(statistics.trace_to_json(), Json::array());
}

TEST(Trace, KeepsTheLastDescriptorsInOrder) {
  Statistics statistics;
  statistics.trace(3);
  for (uint32_t i = 1; i <= 2; i++) statistics.ended(entry(DSA_OPCODE_MEMMOVE, i));
  EXPECT_EQ(traced_sizes(statistics), (std::vector<unsigned>{1, 2}));
  for (uint32_t i = 3; i <= 7; i++) statistics.ended(entry(DSA_OPCODE_MEMMOVE, i));
  EXPECT_EQ(traced_sizes(statistics), (std::vector<unsigned>{5, 6, 7}));
}

TEST(Trace, BeginsAgainWhenAskedForAgain) {
  Statistics statistics;
  statistics.trace(3);
  for (uint32_t i = 1; i <= 3; i++) statistics.ended(entry(DSA_OPCODE_MEMMOVE, i));
  statistics.trace(1);
  EXPECT_EQ(traced_sizes(statistics), std::vector<unsigned>());
  statistics.ended(entry(DSA_OPCODE_MEMMOVE, 4));
  statistics.ended(entry(DSA_OPCODE_MEMMOVE, 5));
  EXPECT_EQ(traced_sizes(statistics), (std::vector<unsigned>{5}));
  statistics.trace(0);
  statistics.ended(entry(DSA_OPCODE_MEMMOVE, 6));
  EXPECT_EQ(statistics.trace_to_json(), Json::array());
}

TEST(Trace, TellsEverythingOfADescriptor) {
  Statistics statistics;
  statistics.trace(2);
  TraceEntry one{
      .began_ns = 11, .ended_ns = 22, .engine = 3, .queue = 5, .sequence = 6, .batch_index = 7};
  one.descriptor.opcode = DSA_OPCODE_MEMMOVE;
  one.descriptor.flags = 0x80000c;
  one.descriptor.src_addr = 0xfffffffffffff000;
  one.descriptor.dst_addr = 0x2000;
  one.descriptor.xfer_size = 0x80000000;
  one.outcome = {.status = 0x83, .bytes_completed = 9, .fault_address = 1};
  statistics.ended(one);
  EXPECT_EQ(statistics.trace_to_json(), Json::parse(R"([{
    "began_ns": 11, "ended_ns": 22, "engine": 3, "queue": 5, "sequence": 6, "batch_index": 7,
    "opcode": 3, "flags": 8388620, "source": 18446744073709547520, "destination": 8192, "size": 2147483648,
    "status": 131, "bytes_completed": 9}])"));
}

TEST(Trace, TellsThatADescriptorIsOfNoBatch) {
  Statistics statistics;
  statistics.trace(1);
  statistics.ended(entry(DSA_OPCODE_NOOP, 0));
  EXPECT_EQ(statistics.trace_to_json()[0]["batch_index"], -1);
}

}  // namespace
}  // namespace memsluice::dsa
