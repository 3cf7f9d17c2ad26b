// SPDX-License-Identifier: GPL-2.0
// WAIT, ENABLE and requests that others write into: cross-channel operations as mlx5 has them
// (CORE-Direct; RedN, NSDI '22).
#include <cstring>

#include "daemon/lending/nic/conformance/fixture.h"

namespace memsluice::nic {
namespace {

constexpr QueuePairOptions kManaged = {.managed_send = true};

WorkRequest send_enable(QueuePair target, uint32_t index) {
  return {.opcode = Opcode::kSendEnable, .target = target, .index = index};
}

}  // namespace

TEST_P(ChainConformance, AManagedQueueWaitsToBeEnabled) {
  const CompletionQueue completions = *nic_->create_completion_queue({});
  const CompletionQueue other = *nic_->create_completion_queue({});
  const QueuePair managed = loop(completions, kManaged), master = loop(other);
  const std::vector<WorkRequest> nops(3, {.id = 1, .signaled = true});
  const Posted posted = nic_->post_send(managed, nops);
  ASSERT_EQ(run(master, other, {}), Status::kSuccess);
  Completion none;
  EXPECT_EQ(nic_->poll(completions, {&none, 1}), 0U);
  ASSERT_EQ(run(master, other, send_enable(managed, posted.begin + 2)), Status::kSuccess);
  EXPECT_EQ(next_status(completions), Status::kSuccess);
  EXPECT_EQ(next_status(completions), Status::kSuccess);
  ASSERT_EQ(run(master, other, {}), Status::kSuccess);
  EXPECT_EQ(nic_->poll(completions, {&none, 1}), 0U);
  // Less than what is enabled already changes nothing.
  ASSERT_EQ(run(master, other, send_enable(managed, posted.begin + 1)), Status::kSuccess);
  ASSERT_EQ(run(master, other, send_enable(managed, posted.end)), Status::kSuccess);
  EXPECT_EQ(next_status(completions), Status::kSuccess);
}

TEST_P(ChainConformance, AWaitCountsTheCompletionsOfAQueue) {
  const CompletionQueue counted = *nic_->create_completion_queue({.ignores_overrun = true});
  const CompletionQueue completions = *nic_->create_completion_queue({});
  const QueuePair waiter = loop(completions), worker = loop(counted);
  const std::array requests = {
      WorkRequest{.opcode = Opcode::kWait, .completion_queue = counted, .index = 3},
      WorkRequest{.id = 7, .signaled = true}};
  nic_->post_send(waiter, requests);
  const WorkRequest nop = {.signaled = true};
  for (int i = 0; i < 2; i++) nic_->post_send(worker, {&nop, 1});
  settle();
  Completion completion;
  EXPECT_EQ(nic_->poll(completions, {&completion, 1}), 0U);
  nic_->post_send(worker, {&nop, 1});
  EXPECT_EQ(next_status(completions), Status::kSuccess);
}

TEST_P(ChainConformance, AWaitForAQueueThatDoesNotExistIsAnError) {
  const CompletionQueue completions = *nic_->create_completion_queue({});
  EXPECT_EQ(run(loop(completions), completions,
                {.opcode = Opcode::kWait, .completion_queue = static_cast<CompletionQueue>(999)}),
            Status::kLocalOperationError);
}

TEST_P(ChainConformance, OnlyManagedQueuesOfTheSameDomainAreEnabled) {
  const CompletionQueue completions = *nic_->create_completion_queue({});
  const QueuePair plain = loop(completions);
  EXPECT_EQ(run(loop(completions), completions, send_enable(plain, 0)),
            Status::kLocalOperationError);
  EXPECT_EQ(
      run(loop(completions), completions, {.opcode = Opcode::kReceiveEnable, .target = plain}),
      Status::kLocalOperationError);
  const QueuePair foreign =
      queue_pair(borrower_, completions, {.managed_send = true, .managed_receive = true});
  EXPECT_EQ(run(loop(completions), completions, send_enable(foreign, 0)),
            Status::kLocalOperationError);
}

TEST_P(ChainConformance, AManagedReceiveWaitsToBeEnabled) {
  const Pair on = pair({.managed_receive = true}, {.receiver_not_ready_retries = 7});
  const CompletionQueue completions = *nic_->create_completion_queue({});
  const QueuePair master = loop(completions);
  const ReceiveRequest receive = {.id = 5};
  const Posted posted = nic_->post_receive(on.server, {&receive, 1});
  const WorkRequest send = {.opcode = Opcode::kSend, .signaled = true};
  nic_->post_send(on.client, {&send, 1});
  for (int turn = 0; turn < 1000; turn++) nic_->progress();
  ASSERT_EQ(run(master, completions, {}), Status::kSuccess);
  Completion none;
  EXPECT_EQ(nic_->poll(on.server_completions, {&none, 1}), 0U);
  ASSERT_EQ(run(master, completions,
                {.opcode = Opcode::kReceiveEnable, .target = on.server, .index = posted.end}),
            Status::kSuccess);
  EXPECT_EQ(next_status(on.client_completions), Status::kSuccess);
  EXPECT_EQ(next_status(on.server_completions), Status::kSuccess);
}

// What a chain is made of: a request's fields are what a READ brought, because it was enabled
// later.
TEST_P(ChainConformance, AFieldWrittenBeforeTheEnableIsSeenAndOneWrittenAfterIsNot) {
  const CompletionQueue completions = *nic_->create_completion_queue({});
  const CompletionQueue trigger = *nic_->create_completion_queue({.ignores_overrun = true});
  const QueuePair managed = loop(completions, kManaged), trigger_queue = loop(trigger);
  const ScatterEntry source = {lent_at(0), 8, open_};
  const std::array requests = {
      WorkRequest{.opcode = Opcode::kWait, .completion_queue = trigger, .index = 1},
      WorkRequest{.opcode = Opcode::kWrite,
                  .signaled = true,
                  .entries = {&source, 1},
                  .remote_key = open_}};
  nic_->post_send(managed, {&requests[0], 1});
  const Posted posted = nic_->post_send(managed, {&requests[1], 1});
  const SendQueueMemory memory = *nic_->send_queue_memory(managed);
  const FieldPlace place = *nic_->field_place(Opcode::kWrite, Field::kRemoteAddress);
  ASSERT_FALSE(place.big_endian);
  const uint64_t block = posted.end - nic_->blocks_of(Opcode::kWrite, 1);
  const ScatterEntry field = {
      memory.address + block * nic_->attributes().block_bytes + place.offset, 8, memory.key};
  const uint64_t written = 0x0123456789abcdef;
  std::memcpy(&lent_[0], &written, 8);
  const uint64_t good = lent_at(512), late = lent_at(1024);
  std::memcpy(&lent_[256], &good, 8);
  std::memcpy(&lent_[264], &late, 8);
  const CompletionQueue edits = *nic_->create_completion_queue({});
  const QueuePair editor = loop(edits);
  std::array editing = {access(Opcode::kRead, open_, 256, {&field, 1}),
                        send_enable(managed, posted.end),
                        access(Opcode::kRead, open_, 264, {&field, 1})};
  editing[1].fence = editing[2].signaled = true;
  nic_->post_send(editor, editing);
  ASSERT_EQ(next_status(edits), Status::kSuccess);
  const WorkRequest nop = {.signaled = true};
  nic_->post_send(trigger_queue, {&nop, 1});
  ASSERT_EQ(next_status(completions), Status::kSuccess);
  EXPECT_EQ(std::memcmp(&lent_[512], &lent_[0], 8), 0);
  EXPECT_NE(std::memcmp(&lent_[1024], &lent_[0], 8), 0);
}

TEST_P(ChainConformance, ABindServesTheQueuePairThatItNames) {
  const Pair on = pair();
  const CompletionQueue completions = *nic_->create_completion_queue({});
  const Key made = window();
  ASSERT_EQ(run(loop(completions), completions, binding(on, made)), Status::kSuccess);
  EXPECT_EQ(read(on, next_key(made), 4096, 8), Status::kSuccess);
  WorkRequest freeing = invalidation(next_key(made));
  freeing.any_queue_pair = true;
  ASSERT_EQ(run(loop(completions), completions, freeing), Status::kSuccess);
  EXPECT_EQ(read(on, next_key(made), 4096, 8), Status::kRemoteAccessError);
}

TEST_P(ChainConformance, ABindIsForAQueuePairThatExistsInTheDomain) {
  const Pair on = pair();
  const CompletionQueue completions = *nic_->create_completion_queue({});
  WorkRequest request = binding(on, window());
  request.target = static_cast<QueuePair>(0xFFFFF0);
  EXPECT_EQ(run(loop(completions), completions, request), Status::kBindError);
  request = binding(on, window());
  request.target = on.client;
  EXPECT_EQ(run(loop(completions), completions, request), Status::kBindError);
}

TEST_P(ChainConformance, AnInvalidationIsOfTheOwnDomain) {
  const Pair on = pair();
  WorkRequest freeing = invalidation(bind(on, window()));
  freeing.any_queue_pair = true;
  EXPECT_EQ(by_client(on, freeing), Status::kBindError);
}

// A request does not wrap around the end of its queue: it is padded for.
TEST_P(ChainConformance, RequestsOfManyBlocksAreKeptWhole) {
  const CompletionQueue completions = *nic_->create_completion_queue({});
  const QueuePair queue = loop(completions, {.send_blocks = 8});
  const Pair on = pair();
  Key key = window();
  for (int i = 0; i < 20; i++) {
    ASSERT_EQ(run(queue, completions, binding(on, key)), Status::kSuccess);
    key = next_key(key);
    WorkRequest freeing = invalidation(key);
    freeing.any_queue_pair = true;
    ASSERT_EQ(run(queue, completions, freeing), Status::kSuccess);
  }
}

}  // namespace memsluice::nic
