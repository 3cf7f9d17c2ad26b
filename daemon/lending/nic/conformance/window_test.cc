// SPDX-License-Identifier: GPL-2.0
// Memory windows. Clauses are those of the InfiniBand Architecture Specification, volume 1,
// chapter 10.
#include <cstring>

#include "daemon/lending/nic/conformance/fixture.h"

namespace memsluice::nic {

TEST_P(Conformance, AWindowShowsItsPartOfARegionThatHasNoRemoteRights) {
  const Pair on = pair();
  const Key key = bind(on, window());
  EXPECT_EQ(read(on, key, 4096, 4096), Status::kSuccess);
  EXPECT_EQ(std::memcmp(buffer_.data(), &lent_[4096], 4096), 0);
  EXPECT_EQ(write(on, key, 8191, 1), Status::kSuccess);
  EXPECT_EQ(fetch_add(on, key, 4096, 1), Status::kSuccess);
}

TEST_P(Conformance, AWindowEndsWithItsLastByte) {
  for (const auto& [offset, bytes] : {std::pair{4096, 4097}, {8192, 1}, {4095, 1}}) {
    const Pair on = pair();
    const Key key = bind(on, window());
    EXPECT_EQ(read(on, key, offset, 1),
              offset == 4096 ? Status::kSuccess : Status::kRemoteAccessError);
    if (offset != 4096) continue;
    const std::array entries = {buffer(4000), buffer(static_cast<uint32_t>(bytes) - 4000)};
    EXPECT_EQ(by_client(on, access(Opcode::kRead, key, offset, entries)),
              Status::kRemoteAccessError);
  }
}

// Type 2B: one queue pair alone. o10-37.2
TEST_P(Conformance, AWindowServesOneQueuePair) {
  const Pair on = pair(), other = pair();
  const Key key = bind(on, window());
  EXPECT_EQ(read(other, key, 4096, 8), Status::kRemoteAccessError);
  expect_dead(other);
  EXPECT_EQ(read(on, key, 4096, 8), Status::kSuccess);
}

TEST_P(Conformance, AWindowHasTheRightsThatItWasBoundWith) {
  const Pair on = pair();
  const Key made = window();
  WorkRequest request = binding(on, made);
  request.rights = kRemoteRead;
  ASSERT_EQ(by_server(on, request), Status::kSuccess);
  EXPECT_EQ(read(on, next_key(made), 4096, 8), Status::kSuccess);
  EXPECT_EQ(write(on, next_key(made), 4096, 8), Status::kRemoteAccessError);
}

TEST_P(Conformance, AZeroBasedWindowIsAddressedFromItsBeginning) {
  const Pair on = pair();
  const Key made = window();
  WorkRequest request = binding(on, made);
  request.rights |= kZeroBased;
  ASSERT_EQ(by_server(on, request), Status::kSuccess);
  const ScatterEntry entry = buffer(64);
  WorkRequest last = access(Opcode::kRead, next_key(made), 0, {&entry, 1});
  last.remote_address = 4096 - 64;
  EXPECT_EQ(by_client(on, last), Status::kSuccess);
  EXPECT_EQ(std::memcmp(buffer_.data(), &lent_[8192 - 64], 64), 0);
  EXPECT_EQ(read(on, next_key(made), 4096, 8), Status::kRemoteAccessError);
}

// Several windows over the same memory, each with its own end: OneSidedMW.
TEST_P(Conformance, WindowsOverlapAndEndApart) {
  const Pair first = pair(), second = pair();
  const Key one = bind(first, window()), two = bind(second, window());
  ASSERT_EQ(by_server(first, invalidation(one)), Status::kSuccess);
  EXPECT_EQ(read(second, two, 4096, 8), Status::kSuccess);
  EXPECT_EQ(read(first, one, 4096, 8), Status::kRemoteAccessError);
  EXPECT_EQ(read(second, two, 4096, 8), Status::kSuccess);
}

TEST_P(Conformance, AnOldKeyIsNoKey) {
  const Pair on = pair();
  const Key old = bind(on, window());
  ASSERT_EQ(by_server(on, invalidation(old)), Status::kSuccess);
  const Key key = bind(on, old);
  EXPECT_EQ(read(on, key, 4096, 8), Status::kSuccess);
  EXPECT_EQ(read(on, old, 4096, 8), Status::kRemoteAccessError);
}

// A bind that is refused puts the queue pair that posted it in error.
#define EXPECT_REFUSED(on, request)                      \
  EXPECT_EQ(by_server(on, request), Status::kBindError); \
  EXPECT_EQ(state((on).server), QueuePairState::kError)

TEST_P(Conformance, AWindowMustBeFreeToBeBound) {  // o10-37.2.30
  const Pair on = pair();
  const Key key = bind(on, window());
  EXPECT_REFUSED(on, binding(on, key));
}

TEST_P(Conformance, ABindNamesTheKeyThatTheWindowHas) {
  const Pair on = pair();
  const Key made = window();
  EXPECT_REFUSED(on, binding(on, made ^ 1));
}

TEST_P(Conformance, WindowQueuePairAndRegionAreOfOneDomain) {  // C10-72
  Pair on = pair();
  const Key foreign = *nic_->create_window(borrower_, WindowType::kType2);
  EXPECT_REFUSED(on, binding(on, foreign));
  on = pair();
  WorkRequest request = binding(on, window());
  request.region_key = *nic_->register_memory(borrower_, lent_, kLocalWrite | kWindowBind);
  EXPECT_REFUSED(on, request);
}

TEST_P(Conformance, ARegionIsNamedByItsWholeKey) {
  const Pair on = pair();
  WorkRequest request = binding(on, window());
  request.region_key ^= 1;
  EXPECT_REFUSED(on, request);
}

TEST_P(Conformance, ARegionAllowsToBeBoundTo) {  // C10-73
  const Pair on = pair();
  WorkRequest request = binding(on, window());
  request.region_key = *nic_->register_memory(lender_, lent_, kLocalWrite | kRemoteAll);
  EXPECT_REFUSED(on, request);
}

TEST_P(Conformance, AWindowWritesWhereTheRegionMayBeWritten) {  // C10-74
  const Pair on = pair();
  WorkRequest request = binding(on, window());
  request.region_key = *nic_->register_memory(lender_, lent_, kRemoteRead | kWindowBind);
  EXPECT_REFUSED(on, request);
}

TEST_P(Conformance, AWindowLiesWithinItsRegion) {  // C10-75
  for (const auto& [offset, bytes] : {std::pair{-1L, 8L},
                                      {static_cast<long>(kLent) - 7, 8L},
                                      {0L, static_cast<long>(kLent) + 1},
                                      {0L, -1L}}) {
    const Pair on = pair();
    WorkRequest request = binding(on, window());
    request.address = lent_at(offset);
    request.length = static_cast<uint64_t>(bytes);
    EXPECT_REFUSED(on, request);
  }
}

TEST_P(Conformance, AWindowOfType2IsNotEmpty) {  // o10-37.2.40
  const Pair on = pair();
  WorkRequest request = binding(on, window());
  request.length = 0;
  EXPECT_REFUSED(on, request);
}

TEST_P(Conformance, AWindowGivesRemoteRightsOnly) {
  const Pair on = pair();
  WorkRequest request = binding(on, window());
  request.rights |= kLocalWrite;
  EXPECT_REFUSED(on, request);
}

// man ibv_bind_mw; type 1 is of its domain, and bound again without being freed.
TEST_P(Conformance, AWindowOfType1ServesItsDomain) {
  const Pair on = pair(), other = pair();
  const Key made = window(WindowType::kType1);
  const Key key = bind(on, made);
  EXPECT_EQ(read(other, key, 4096, 8), Status::kSuccess);
  const Key again = bind(on, key);
  EXPECT_EQ(read(other, again, 4096, 8), Status::kSuccess);
  const CompletionQueue completions = *nic_->create_completion_queue({});
  const QueuePair served = queue_pair(borrower_, completions);
  const QueuePair reader = queue_pair(borrower_, completions);
  ASSERT_TRUE(nic_->connect(served, reader, {}).ok());
  ASSERT_TRUE(nic_->connect(reader, served, {}).ok());
  const ScatterEntry entry = buffer(8);
  EXPECT_EQ(run(reader, completions, access(Opcode::kRead, again, 4096, {&entry, 1})),
            Status::kRemoteAccessError);
  WorkRequest unbinding = binding(on, again);
  unbinding.length = 0;
  EXPECT_EQ(by_server(on, unbinding), Status::kSuccess);
  EXPECT_EQ(read(on, next_key(again), 4096, 8), Status::kRemoteAccessError);
}

TEST_P(Conformance, AWindowOfType1IsNotZeroBased) {  // o10-36.2.2
  const Pair on = pair();
  WorkRequest request = binding(on, window(WindowType::kType1));
  request.rights |= kZeroBased;
  EXPECT_REFUSED(on, request);
}

TEST_P(Conformance, AWindowOfType1IsNotInvalidated) {  // o10-37.2.26
  const Pair on = pair();
  EXPECT_REFUSED(on, invalidation(bind(on, window(WindowType::kType1))));
}

TEST_P(Conformance, OnlyABoundWindowIsInvalidated) {
  Pair on = pair();
  const Key made = window();
  EXPECT_REFUSED(on, invalidation(made));
  on = pair();
  const Key key = bind(on, made);
  EXPECT_REFUSED(on, invalidation(key ^ 1));
  on = pair();
  const Key freed = bind(on, window());
  ASSERT_EQ(by_server(on, invalidation(freed)), Status::kSuccess);
  EXPECT_REFUSED(on, invalidation(freed));
  on = pair();
  EXPECT_REFUSED(on, invalidation(open_));
}

// The check by which a chain knows the owner: CHECK_QPN of mlx5.
TEST_P(Conformance, AWindowIsInvalidatedOnTheQueuePairThatItServes) {
  const Pair on = pair(), other = pair();
  const Key key = bind(on, window());
  EXPECT_REFUSED(other, invalidation(key));
  EXPECT_EQ(read(on, key, 4096, 8), Status::kSuccess);
}

TEST_P(Conformance, ASendInvalidatesAWindowOfThePeer) {
  const Pair on = pair(), other = pair();
  const ReceiveRequest receive = {.id = 3};
  nic_->post_receive(on.server, {&receive, 1});
  nic_->post_receive(other.server, {&receive, 1});
  const Key key = bind(on, window());
  const WorkRequest send = {.opcode = Opcode::kSendWithInvalidate, .key = key};
  EXPECT_EQ(by_client(other, send), Status::kRemoteAccessError) << "not its own";
  EXPECT_EQ(read(on, key, 4096, 8), Status::kSuccess);
  ASSERT_EQ(by_client(on, send), Status::kSuccess);
  const std::optional<Completion> received = next(on.server_completions);
  ASSERT_TRUE(received);
  EXPECT_TRUE(received->invalidated);
  EXPECT_EQ(received->invalidated_key, key);
  EXPECT_EQ(read(on, key, 4096, 8), Status::kRemoteAccessError);
}

TEST_P(Conformance, ToRevokeAWindowNeedsNoQueuePair) {
  const Pair on = pair();
  const Key key = bind(on, window());
  ASSERT_TRUE(nic_->fail(on.server).ok());
  ASSERT_TRUE(nic_->revoke_window(key).ok());
  EXPECT_TRUE(nic_->destroy(on.server).ok());
  EXPECT_FALSE(nic_->revoke_window(parent_).ok());
}

// Bound and read over and over: each key works until its window ends.
TEST_P(Conformance, AWindowIsBoundAgainAndAgain) {
  const Pair on = pair();
  Key key = window();
  for (int i = 0; i < 300; i++) {
    key = bind(on, key);
    ASSERT_EQ(read(on, key, 4096, 8), Status::kSuccess);
    ASSERT_EQ(by_server(on, invalidation(key)), Status::kSuccess);
  }
}

}  // namespace memsluice::nic
