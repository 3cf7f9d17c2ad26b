// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/nic/emulated/emulated_nic.h"

#include <cstring>

#include "daemon/lending/nic/conformance/fixture.h"

namespace memsluice::nic {
namespace {

Provider provider(const std::string& name, const EmulatedOptions& options) {
  return {name, [options] { return std::make_unique<EmulatedNic>(options); }};
}

const auto kProviders = testing::Values(provider("polled", {}),
                                        provider("seeded_1", {.schedule_seed = 1, .key_seed = 1}),
                                        provider("seeded_2", {.schedule_seed = 2, .key_seed = 2}),
                                        provider("thread", {.own_thread = true}));
const auto kName = [](const testing::TestParamInfo<Provider>& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Emulated, Conformance, kProviders, kName);
INSTANTIATE_TEST_SUITE_P(Emulated, ChainConformance, kProviders, kName);

class EmulatedNicTest : public NicTest {
 protected:
  void SetUp() override {
    auto nic = std::make_unique<EmulatedNic>(EmulatedOptions{.schedule_seed = 3, .key_seed = 3});
    emulated_ = nic.get();
    open(std::move(nic));
  }

  // A request of a managed queue, as others could have written it, then enabled.
  Status enabled(const WorkRequest& request, const std::function<void(RequestBlock&)>& edit,
                 uint32_t blocks_before = 0, uint32_t blocks_in_all = 0) {
    const CompletionQueue completions = *nic_->create_completion_queue({});
    const CompletionQueue other = *nic_->create_completion_queue({});
    const QueuePair managed = loop(completions, {.send_blocks = 8, .managed_send = true});
    const std::vector<WorkRequest> before(blocks_before);
    nic_->post_send(managed, before);
    WorkRequest signaled = request;
    signaled.signaled = true;
    const Posted posted = nic_->post_send(managed, {&signaled, 1});
    auto* blocks = reinterpret_cast<RequestBlock*>(nic_->send_queue_memory(managed)->address);
    edit(blocks[posted.begin]);
    const uint32_t end = blocks_in_all ? blocks_in_all : posted.end;
    EXPECT_EQ(
        run(loop(other), other, {.opcode = Opcode::kSendEnable, .target = managed, .index = end}),
        Status::kSuccess);
    return next_status(completions);
  }

  EmulatedNic* emulated_ = nullptr;
};

TEST_F(EmulatedNicTest, ARequestThatIsNotOneIsRefused) {
  const auto as_it_is = [](RequestBlock&) {};
  EXPECT_EQ(enabled({}, as_it_is), Status::kSuccess);
  EXPECT_EQ(enabled({}, [](RequestBlock& block) { block.index++; }), Status::kLocalOperationError);
  EXPECT_EQ(enabled({}, [](RequestBlock& block) { block.opcode = static_cast<Opcode>(0x99); }),
            Status::kLocalOperationError);
  EXPECT_EQ(enabled({}, [](RequestBlock& block) { block.opcode = Opcode::kBind; }),
            Status::kLocalOperationError)
      << "has fewer blocks than a BIND";
  EXPECT_EQ(enabled({}, [](RequestBlock& block) { block.entries = 200; }),
            Status::kLocalOperationError);
}

TEST_F(EmulatedNicTest, ARequestOfZeroEntriesMayHaveMoreBlocksThanItNeeds) {
  EXPECT_EQ(enabled({.opcode = Opcode::kLocalInvalidate},
                    [](RequestBlock& block) { block.opcode = Opcode::kNop; }),
            Status::kSuccess);
}

TEST_F(EmulatedNicTest, ARequestDoesNotWrapAroundTheEndOfItsQueue) {
  const std::vector<WorkRequest> nops(8);
  EXPECT_EQ(enabled(
                {}, [](RequestBlock& block) { block.blocks = 2; }, 7),
            Status::kLocalOperationError);
}

TEST_F(EmulatedNicTest, WhatIsEnabledHasBeenPosted) {
  const CompletionQueue completions = *nic_->create_completion_queue({});
  const CompletionQueue other = *nic_->create_completion_queue({});
  const QueuePair managed = loop(completions, {.send_blocks = 8, .managed_send = true});
  auto* blocks = reinterpret_cast<RequestBlock*>(nic_->send_queue_memory(managed)->address);
  blocks[0] = {.index = 0, .flags = kFlagSignaled};
  run(loop(other), other, {.opcode = Opcode::kSendEnable, .target = managed, .index = 1});
  EXPECT_EQ(next_status(completions), Status::kLocalOperationError);
}

TEST_F(EmulatedNicTest, ABindSaysTwiceWhereItIs) {
  const Pair on = pair();
  const Key made = window();
  EXPECT_EQ(enabled(binding(on, made), [](RequestBlock&) {}), Status::kSuccess);
  EXPECT_EQ(enabled(binding(on, window()), [](RequestBlock& block) { block.swap += 8; }),
            Status::kBindError);
}

TEST_F(EmulatedNicTest, TheSameSeedGivesTheSameRun) {
  const auto order = [](uint64_t seed) {
    EmulatedNic nic({.schedule_seed = seed});
    const ProtectionDomain domain = *nic.create_protection_domain();
    const CompletionQueue completions = *nic.create_completion_queue({.entries = 1024});
    for (uint64_t queue = 0; queue < 4; queue++) {
      const QueuePair looped = *nic.create_queue_pair(
          domain, {.send_completions = completions, .receive_completions = completions});
      EXPECT_TRUE(nic.connect(looped, looped, {}).ok());
      const std::vector<WorkRequest> nops(20, {.id = queue, .signaled = true});
      nic.post_send(looped, nops);
    }
    while (nic.progress()) {
    }
    std::array<Completion, 80> got = {};
    EXPECT_EQ(nic.poll(completions, got), 80U);
    std::string text;
    for (const Completion& completion : got) text += static_cast<char>('0' + completion.id);
    return text;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST_F(EmulatedNicTest, APeerThatIsLostDoesNotAnswer) {
  const Pair on = pair();
  ASSERT_TRUE(emulated_->lose_peer(on.client).ok());
  EXPECT_EQ(read(on, open_, 0, 8), Status::kRetryExceeded);
  EXPECT_EQ(state(on.server), QueuePairState::kReady);
}

TEST_F(EmulatedNicTest, ABrokenDeviceCompletesNothingAndCanBeTakenApart) {
  const Pair on = pair();
  const Key key = bind(on, window());
  emulated_->break_device();
  const WorkRequest nop = {.signaled = true};
  nic_->post_send(on.client, {&nop, 1});
  settle();
  Completion none;
  EXPECT_EQ(nic_->poll(on.client_completions, {&none, 1}), 0U);
  EXPECT_FALSE(nic_->create_window(lender_, WindowType::kType2).ok());
  EXPECT_EQ(events().front().event, Event::kDeviceFatal);
  EXPECT_TRUE(nic_->destroy_window(key).ok());
  EXPECT_TRUE(nic_->destroy(on.client).ok());
  EXPECT_TRUE(nic_->destroy(on.server).ok());
}

TEST_F(EmulatedNicTest, LimitsAreLimits) {
  EmulatedNic small({.max_queue_pairs = 1, .max_completion_queues = 1, .max_keys = 2});
  const ProtectionDomain domain = *small.create_protection_domain();
  EXPECT_FALSE(small.create_completion_queue({.entries = 3}).ok());
  const CompletionQueue completions = *small.create_completion_queue({});
  EXPECT_EQ(small.create_completion_queue({}).error().code, ErrorCode::kUnavailable);
  QueuePairOptions options = {.send_completions = completions, .receive_completions = completions};
  options.send_blocks = 100;
  EXPECT_FALSE(small.create_queue_pair(domain, options).ok());
  options.send_blocks = 128;
  const QueuePair made = *small.create_queue_pair(domain, options);
  EXPECT_EQ(small.create_queue_pair(domain, options).error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(small.create_window(domain, WindowType::kType2).ok());
  EXPECT_EQ(small.create_window(domain, WindowType::kType2).error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(small.connect(made, made, {.receiver_not_ready_retries = 8}).ok());
  EXPECT_FALSE(small.connect(made, made, {.max_reads_under_way = 200}).ok());
}

}  // namespace
}  // namespace memsluice::nic
