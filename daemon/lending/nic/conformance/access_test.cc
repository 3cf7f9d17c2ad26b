// SPDX-License-Identifier: GPL-2.0
// READ, WRITE, atomics and SEND over reliable connections. Clauses are those of the InfiniBand
// Architecture Specification, volume 1, where one is named; "man" is a manual page of rdma-core.
#include <cstring>

#include "daemon/lending/nic/conformance/fixture.h"

namespace memsluice::nic {

// man ibv_post_send: RDMA_READ, RDMA_WRITE with several scatter entries.
TEST_P(Conformance, ReadAndWriteMoveExactlyTheBytesNamed) {
  const Pair on = pair();
  const std::array entries = {buffer(3, 0), buffer(0, 64), buffer(61, 64)};
  ASSERT_EQ(by_client(on, access(Opcode::kRead, open_, 100, entries)), Status::kSuccess);
  EXPECT_EQ(std::memcmp(buffer_.data(), &lent_[100], 3), 0);
  EXPECT_EQ(std::memcmp(&buffer_[64], &lent_[103], 61), 0);
  EXPECT_EQ(buffer_[3], std::byte{0});
  buffer_[0] = std::byte{1}, buffer_[64] = std::byte{2};
  const std::byte before = lent_[199], after = lent_[264];
  ASSERT_EQ(by_client(on, access(Opcode::kWrite, open_, 200, entries)), Status::kSuccess);
  EXPECT_EQ(lent_[200], std::byte{1});
  EXPECT_EQ(lent_[203], std::byte{2});
  EXPECT_EQ(lent_[199], before);
  EXPECT_EQ(lent_[264], after);
}

// man ibv_post_send: ATOMIC_FETCH_AND_ADD, ATOMIC_CMP_AND_SWP return what was there before.
TEST_P(Conformance, AtomicsReturnWhatWasThere) {
  const Pair on = pair();
  const uint64_t five = 5;
  std::memcpy(lent_.data(), &five, 8);
  ASSERT_EQ(fetch_add(on, open_, 0, 3), Status::kSuccess);
  uint64_t word = 0;
  std::memcpy(&word, buffer_.data(), 8);
  EXPECT_EQ(word, 5U);
  const ScatterEntry entry = buffer(8);
  WorkRequest swap = access(Opcode::kCompareSwap, open_, 0, {&entry, 1});
  swap.operand = 7, swap.swap = 1;
  ASSERT_EQ(by_client(on, swap), Status::kSuccess);
  std::memcpy(&word, buffer_.data(), 8);
  EXPECT_EQ(word, 8U) << "and nothing was swapped";
  swap.operand = 8;
  ASSERT_EQ(by_client(on, swap), Status::kSuccess);
  std::memcpy(&word, lent_.data(), 8);
  EXPECT_EQ(word, 1U);
}

// man ibv_post_send: the remote address of an atomic is aligned to its eight bytes.
TEST_P(Conformance, AnAtomicThatIsNotAlignedIsRefused) {
  const Pair on = pair();
  EXPECT_EQ(fetch_add(on, open_, 4, 1), Status::kRemoteInvalidRequest);
  expect_dead(on);
}

TEST_P(Conformance, AnAtomicNeedsRoomForItsResult) {
  EXPECT_EQ(fetch_add(pair(), open_, 0, 1, 4), Status::kLocalLengthError);
}

// A remote access error puts both sides in error, and nobody else: reference/rdma.md 3.
TEST_P(Conformance, ARefusalEndsBothSidesAndNoOther) {
  const Pair bad = pair(), good = pair();
  const WorkRequest behind = {.id = 9};
  EXPECT_EQ(read(bad, open_ ^ 1, 0, 64), Status::kRemoteAccessError) << "a key with another tag";
  expect_dead(bad);
  EXPECT_EQ(nic_->post_send(bad.client, {&behind, 1}).status, PostStatus::kPosted);
  EXPECT_EQ(next_status(bad.client_completions), Status::kFlushed);
  EXPECT_EQ(read(good, open_, 0, 64), Status::kSuccess);
  bool told = false;
  for (const AsyncEvent& event : events())
    told |= event.event == Event::kQueuePairAccessError &&
            event.object == static_cast<uint32_t>(bad.server);
  EXPECT_TRUE(told);
}

// man ibv_reg_mr: a region is of one protection domain.
TEST_P(Conformance, ARegionOfAnotherDomainIsRefused) {
  const Key other = *nic_->register_memory(borrower_, lent_, kLocalWrite | kRemoteAll);
  EXPECT_EQ(read(pair(), other, 0, 64), Status::kRemoteAccessError);
}

TEST_P(Conformance, ARegionEndsWithItsLastByte) {
  EXPECT_EQ(read(pair(), open_, kLent - 64, 64), Status::kSuccess);
  EXPECT_EQ(read(pair(), open_, kLent - 63, 64), Status::kRemoteAccessError);
  EXPECT_EQ(write(pair(), open_, -1, 1), Status::kRemoteAccessError);
  EXPECT_EQ(fetch_add(pair(), open_, kLent, 1), Status::kRemoteAccessError);
  const ScatterEntry entry = buffer(64);
  WorkRequest wraps = access(Opcode::kRead, open_, 0, {&entry, 1});
  wraps.remote_address = ~uint64_t{0} - 8;
  EXPECT_EQ(by_client(pair(), wraps), Status::kRemoteAccessError);
}

TEST_P(Conformance, NothingIsMovedWithoutALengthAndNoKeyIsLookedAt) {
  EXPECT_EQ(read(pair(), 0xdeadbeef, 0, 0), Status::kSuccess);
  EXPECT_EQ(write(pair(), 0xdeadbeef, 0, 0), Status::kSuccess);
}

// man ibv_reg_mr: each kind of access has its right.
TEST_P(Conformance, ARegionHasTheRightsThatItWasGiven) {
  EXPECT_EQ(read(pair(), parent_, 0, 64), Status::kRemoteAccessError);
  const Key readable = *nic_->register_memory(lender_, lent_, kRemoteRead);
  EXPECT_EQ(read(pair(), readable, 0, 64), Status::kSuccess);
  EXPECT_EQ(write(pair(), readable, 0, 64), Status::kRemoteAccessError);
  EXPECT_EQ(fetch_add(pair(), readable, 0, 1), Status::kRemoteAccessError);
}

TEST_P(Conformance, WhatIsWrittenRemotelyIsWrittenLocallyToo) {
  EXPECT_FALSE(nic_->register_memory(lender_, lent_, kRemoteWrite).ok());
  EXPECT_FALSE(nic_->register_memory(lender_, lent_, kRemoteAtomic).ok());
}

// man ibv_modify_qp: qp_access_flags.
TEST_P(Conformance, AQueuePairServesWhatItsOwnRightsAllow) {
  EXPECT_EQ(read(pair({.remote_rights = kRemoteWrite}), open_, 0, 64), Status::kRemoteAccessError);
  EXPECT_EQ(write(pair({.remote_rights = kRemoteRead}), open_, 0, 64), Status::kRemoteAccessError);
}

// man ibv_post_send: lkey of each scatter entry.
TEST_P(Conformance, OwnMemoryIsCheckedToo) {
  const Pair on = pair();
  ScatterEntry entry = buffer(64, 4096 - 63);
  EXPECT_EQ(by_client(on, access(Opcode::kRead, open_, 0, {&entry, 1})),
            Status::kLocalProtectionError);
  EXPECT_EQ(state(on.client), QueuePairState::kError);
  EXPECT_EQ(state(on.server), QueuePairState::kReady);
  entry = {lent_at(0), 64, open_};  // of the lender's domain
  EXPECT_EQ(by_client(pair(), access(Opcode::kRead, open_, 0, {&entry, 1})),
            Status::kLocalProtectionError);
  const Key constant = *nic_->register_memory(borrower_, buffer_, kRemoteRead);
  entry = {at(buffer_.data()), 64, constant};
  EXPECT_EQ(by_client(pair(), access(Opcode::kRead, open_, 0, {&entry, 1})),
            Status::kLocalProtectionError);
  EXPECT_EQ(by_client(pair(), access(Opcode::kWrite, open_, 0, {&entry, 1})), Status::kSuccess);
  const Pair third = pair();
  entry = {lent_at(4096), 64, bind(third, window())};
  EXPECT_EQ(by_server(third, {.opcode = Opcode::kWrite, .entries = {&entry, 1}}),
            Status::kLocalProtectionError)
      << "a window is no local key";
}

// man ibv_post_recv, ibv_poll_cq.
TEST_P(Conformance, ASendLandsInTheOldestReceive) {
  const Pair on = pair();
  const std::array entries = {ScatterEntry{lent_at(0), 4, open_},
                              ScatterEntry{lent_at(32), 60, open_}};
  const std::array receives = {ReceiveRequest{.id = 1, .entries = entries},
                               ReceiveRequest{.id = 2, .entries = entries}};
  ASSERT_EQ(nic_->post_receive(on.server, receives).status, PostStatus::kPosted);
  buffer_[0] = std::byte{0x11}, buffer_[4] = std::byte{0x22};
  const ScatterEntry entry = buffer(8);
  ASSERT_EQ(by_client(on, {.opcode = Opcode::kSend, .entries = {&entry, 1}}), Status::kSuccess);
  const std::optional<Completion> received = next(on.server_completions);
  ASSERT_TRUE(received);
  EXPECT_TRUE(received->is_receive);
  EXPECT_EQ(received->id, 1U);
  EXPECT_EQ(received->bytes, 8U);
  EXPECT_EQ(lent_[0], std::byte{0x11});
  EXPECT_EQ(lent_[32], std::byte{0x22});
}

TEST_P(Conformance, ASendThatIsTooLongEndsBothSides) {
  const Pair on = pair();
  const ScatterEntry room = {lent_at(0), 7, open_};
  const ReceiveRequest receive = {.entries = {&room, 1}};
  nic_->post_receive(on.server, {&receive, 1});
  const ScatterEntry entry = buffer(8);
  EXPECT_EQ(by_client(on, {.opcode = Opcode::kSend, .entries = {&entry, 1}}),
            Status::kRemoteInvalidRequest);
  EXPECT_EQ(next_status(on.server_completions), Status::kLocalLengthError);
  expect_dead(on);
}

TEST_P(Conformance, AReceiveThatMayNotBeWrittenIsTheReceiversError) {
  const Pair on = pair();
  const ScatterEntry foreign = {at(buffer_.data()), 64, buffer_key_};
  const ReceiveRequest receive = {.entries = {&foreign, 1}};
  nic_->post_receive(on.server, {&receive, 1});
  const ScatterEntry entry = buffer(8);
  EXPECT_EQ(by_client(on, {.opcode = Opcode::kSend, .entries = {&entry, 1}}),
            Status::kRemoteOperationError);
  EXPECT_EQ(next_status(on.server_completions), Status::kLocalProtectionError);
}

// man ibv_modify_qp: rnr_retry.
TEST_P(Conformance, AReceiverThatIsNotReadyIsTriedAgainAsOftenAsAsked) {
  const Pair patient = pair({}, {.receiver_not_ready_retries = 7});
  const ScatterEntry entry = buffer(8);
  const WorkRequest send = {.opcode = Opcode::kSend, .signaled = true, .entries = {&entry, 1}};
  EXPECT_EQ(by_client(pair({}, {.receiver_not_ready_retries = 0}), send),
            Status::kReceiverNotReady);
  EXPECT_EQ(by_client(pair({}, {.receiver_not_ready_retries = 2}), send),
            Status::kReceiverNotReady);
  nic_->post_send(patient.client, {&send, 1});
  for (int turn = 0; turn < 2000; turn++) nic_->progress();
  const ScatterEntry room = {lent_at(0), 64, open_};
  const ReceiveRequest receive = {.entries = {&room, 1}};
  nic_->post_receive(patient.server, {&receive, 1});
  EXPECT_EQ(next_status(patient.client_completions), Status::kSuccess);
}

// Completions come in the order of the requests, and only those asked for.
TEST_P(Conformance, CompletionsComeInOrder) {
  const Pair on = pair();
  const ScatterEntry entry = buffer(8);
  std::vector<WorkRequest> requests;
  for (uint64_t id = 0; id < 40; id++) {
    WorkRequest request = access(id % 3 ? Opcode::kNop : Opcode::kRead, open_, 0, {&entry, 1});
    request.id = id;
    request.signaled = id % 2 == 0;
    requests.push_back(request);
  }
  ASSERT_EQ(nic_->post_send(on.client, requests).status, PostStatus::kPosted);
  for (uint64_t id = 0; id < 40; id += 2) {
    const std::optional<Completion> completion = next(on.client_completions);
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->id, id);
  }
}

// man ibv_post_send: IBV_SEND_FENCE. Without one, what a READ brings may come too late.
TEST_P(Conformance, AFenceWaitsForReads) {
  const Pair on = pair();
  for (int i = 0; i < 50; i++) {
    lent_[0] = static_cast<std::byte>(i + 1);
    const ScatterEntry entry = buffer(1);
    std::array requests = {access(Opcode::kRead, open_, 0, {&entry, 1}),
                           access(Opcode::kWrite, open_, 8, {&entry, 1})};
    requests[1].fence = requests[1].signaled = true;
    ASSERT_EQ(nic_->post_send(on.client, requests).status, PostStatus::kPosted);
    ASSERT_EQ(next_status(on.client_completions), Status::kSuccess);
    ASSERT_EQ(lent_[8], lent_[0]);
  }
}

// man ibv_modify_qp: max_rd_atomic, max_dest_rd_atomic.
TEST_P(Conformance, NoMoreReadsAreUnderWayThanThePeerServes) {
  const Pair on = pair({}, {.max_reads_under_way = 1}, {.max_peer_reads_under_way = 1});
  const ScatterEntry entry = buffer(8);
  WorkRequest request = access(Opcode::kRead, open_, 0, {&entry, 1});
  request.signaled = true;
  const std::vector<WorkRequest> requests(32, request);
  nic_->post_send(on.client, requests);
  for (int i = 0; i < 32; i++) ASSERT_EQ(next_status(on.client_completions), Status::kSuccess);
  EXPECT_EQ(read(pair({}, {}, {.max_peer_reads_under_way = 0}), open_, 0, 8),
            Status::kRemoteInvalidRequest);
}

// man ibv_create_cq: an overrun is an error of the completion queue.
TEST_P(Conformance, ACompletionQueueThatIsOverrunEndsItsQueuePairs) {
  const CompletionQueue small = *nic_->create_completion_queue({.entries = 2});
  const QueuePair looped = loop(small);
  const std::vector<WorkRequest> requests(3, {.signaled = true});
  nic_->post_send(looped, requests);
  for (int turn = 0; turn < 1000 && state(looped) != QueuePairState::kError; turn++) {
    nic_->progress();
    if (threaded_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  bool told = false;
  for (const AsyncEvent& event : events()) told |= event.event == Event::kCompletionQueueError;
  EXPECT_TRUE(told);
  EXPECT_EQ(state(looped), QueuePairState::kError);
}

TEST_P(Conformance, AQueueTakesAsManyRequestsAsItHasBlocks) {
  const CompletionQueue completions = *nic_->create_completion_queue({});
  const QueuePair queue = queue_pair(lender_, completions, {.send_blocks = 8, .receives = 4});
  const std::vector<WorkRequest> nops(9);
  EXPECT_EQ(nic_->post_send(queue, nops).status, PostStatus::kQueueFull);
  EXPECT_EQ(nic_->post_send(queue, std::span(nops).first(8)).status, PostStatus::kPosted);
  EXPECT_EQ(nic_->post_send(queue, std::span(nops).first(1)).status, PostStatus::kQueueFull);
  const std::vector<ReceiveRequest> receives(5);
  EXPECT_EQ(nic_->post_receive(queue, receives).status, PostStatus::kQueueFull);
  const std::vector<ScatterEntry> entries(9);
  const WorkRequest wide = {.opcode = Opcode::kSend, .entries = entries};
  EXPECT_EQ(nic_->post_send(queue, {&wide, 1}).status, PostStatus::kTooManyEntries);
  EXPECT_EQ(nic_->post_send(static_cast<QueuePair>(0xFFFFFF), {&wide, 1}).status,
            PostStatus::kNoSuchQueue);
}

// man ibv_modify_qp: RESET, and connected anew.
TEST_P(Conformance, AQueuePairInErrorWorksAgainAfterReset) {
  const Pair on = pair();
  EXPECT_EQ(read(on, 0, 0, 8), Status::kRemoteAccessError);
  for (QueuePair each : {on.client, on.server}) ASSERT_TRUE(nic_->reset(each).ok());
  EXPECT_FALSE(nic_->connect(on.client, static_cast<QueuePair>(0xFFFFFF), {}).ok());
  ASSERT_TRUE(nic_->connect(on.client, on.server, {}).ok());
  ASSERT_TRUE(nic_->connect(on.server, on.client, {}).ok());
  EXPECT_FALSE(nic_->connect(on.server, on.client, {}).ok());
  EXPECT_EQ(read(on, open_, 0, 8), Status::kSuccess);
}

TEST_P(Conformance, ToFailAQueuePairFlushesWhatIsPosted) {
  const Pair on = pair();
  const ReceiveRequest receive = {.id = 4};
  nic_->post_receive(on.server, {&receive, 1});
  ASSERT_TRUE(nic_->fail(on.server).ok());
  const std::optional<Completion> flushed = next(on.server_completions);
  ASSERT_TRUE(flushed);
  EXPECT_EQ(flushed->id, 4U);
  EXPECT_EQ(flushed->status, Status::kFlushed);
  EXPECT_EQ(read(on, open_, 0, 8), Status::kRetryExceeded) << "the peer does not answer";
}

// man ibv_dealloc_pd, ibv_destroy_cq, ibv_destroy_qp, ibv_dereg_mr: EBUSY.
TEST_P(Conformance, WhatIsInUseIsNotDestroyed) {
  const Pair on = pair();
  EXPECT_EQ(nic_->destroy(lender_).error().code, ErrorCode::kConflict);
  EXPECT_EQ(nic_->destroy(on.server_completions).error().code, ErrorCode::kConflict);
  const Key bound = bind(on, window());
  EXPECT_EQ(nic_->destroy(on.server).error().code, ErrorCode::kConflict);
  EXPECT_EQ(nic_->deregister_memory(parent_).error().code, ErrorCode::kConflict);
  ASSERT_TRUE(nic_->destroy_window(bound).ok());
  EXPECT_TRUE(nic_->deregister_memory(parent_).ok());
  EXPECT_TRUE(nic_->destroy(on.server).ok());
  EXPECT_TRUE(nic_->destroy(on.server_completions).ok());
}

TEST_P(Conformance, AnEmptyDomainCanBeDestroyed) {
  const ProtectionDomain domain = *nic_->create_protection_domain();
  EXPECT_TRUE(nic_->destroy(domain).ok());
  EXPECT_FALSE(nic_->destroy(domain).ok());
}

}  // namespace memsluice::nic
