// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "daemon/lending/nic/nic.h"

namespace memsluice::nic {

// A NIC that the suite runs on.
struct Provider {
  std::string name;
  std::function<std::unique_ptr<Nic>()> open;
};
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
inline void PrintTo(const Provider& provider, std::ostream* out) {
  *out << provider.name;
}

// What every test of a NIC needs: a lender with memory under a window, and a borrower with a
// buffer. Each has a protection domain of its own, as if they were two machines.
class NicTest : public testing::Test {
 protected:
  static constexpr uint64_t kLent = 16384;

  struct Pair {
    QueuePair client, server;
    CompletionQueue client_completions, server_completions;
  };

  void open(std::unique_ptr<Nic> nic) {
    nic_ = std::move(nic);
    lender_ = *nic_->create_protection_domain();
    borrower_ = *nic_->create_protection_domain();
    // What lies around the region is valid memory, too: a check that is missing is no crash.
    lent_ = std::span(memory_).subspan(kLent, kLent);
    for (size_t i = 0; i < memory_.size(); i++) memory_[i] = static_cast<std::byte>(i * 7);
    parent_ = *nic_->register_memory(lender_, lent_, kLocalWrite | kWindowBind);
    open_ = *nic_->register_memory(lender_, lent_, kLocalWrite | kWindowBind | kRemoteAll);
    buffer_key_ = *nic_->register_memory(borrower_, buffer_, kLocalWrite);
  }

  static uint64_t at(const void* memory) { return reinterpret_cast<uint64_t>(memory); }
  uint64_t lent_at(int64_t offset) const { return at(lent_.data()) + offset; }
  ScatterEntry buffer(uint32_t bytes, uint32_t offset = 0) const {
    return {at(buffer_.data()) + offset, bytes, buffer_key_};
  }

  QueuePair queue_pair(ProtectionDomain domain, CompletionQueue completions,
                       QueuePairOptions options = {}) {
    options.send_completions = options.receive_completions = completions;
    options.max_scatter_entries = 8;
    return *nic_->create_queue_pair(domain, options);
  }

  Pair pair(const QueuePairOptions& server = {}, const ConnectionOptions& client_connection = {},
            const ConnectionOptions& server_connection = {}) {
    Pair made = {};
    made.client_completions = *nic_->create_completion_queue({});
    made.server_completions = *nic_->create_completion_queue({});
    made.client = queue_pair(borrower_, made.client_completions);
    made.server = queue_pair(lender_, made.server_completions, server);
    EXPECT_TRUE(nic_->connect(made.client, made.server, client_connection).ok());
    EXPECT_TRUE(nic_->connect(made.server, made.client, server_connection).ok());
    return made;
  }

  // A queue pair that is connected to itself.
  QueuePair loop(CompletionQueue completions, const QueuePairOptions& options = {}) {
    QueuePair made = queue_pair(lender_, completions, options);
    EXPECT_TRUE(nic_->connect(made, made, {}).ok());
    return made;
  }

  std::optional<Completion> next(CompletionQueue queue) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (bool idle = false;;) {
      Completion completion;
      if (nic_->poll(queue, {&completion, 1}) == 1) return completion;
      if (idle && !threaded_) return {};
      idle = !nic_->progress();
      if (threaded_) std::this_thread::yield();
      if (std::chrono::steady_clock::now() > until) return {};
    }
  }
  Status next_status(CompletionQueue queue) {
    std::optional<Completion> completion = next(queue);
    EXPECT_TRUE(completion) << "no completion";
    return completion ? completion->status : Status::kFlushed;
  }

  // Until a NIC without threads has nothing to do.
  void settle() {
    for (int turn = 0; turn < 100000 && nic_->progress(); turn++) {
    }
  }

  Status run(QueuePair queue_pair, CompletionQueue completions, WorkRequest request) {
    request.signaled = true;
    EXPECT_EQ(nic_->post_send(queue_pair, {&request, 1}).status, PostStatus::kPosted);
    return next_status(completions);
  }
  Status by_client(const Pair& on, const WorkRequest& request) {
    return run(on.client, on.client_completions, request);
  }
  Status by_server(const Pair& on, const WorkRequest& request) {
    return run(on.server, on.server_completions, request);
  }

  WorkRequest access(Opcode opcode, Key key, int64_t offset,
                     std::span<const ScatterEntry> entries) {
    return {
        .opcode = opcode, .entries = entries, .remote_address = lent_at(offset), .remote_key = key};
  }
  Status read(const Pair& on, Key key, int64_t offset, uint32_t bytes) {
    const ScatterEntry entry = buffer(bytes);
    return by_client(on, access(Opcode::kRead, key, offset, {&entry, 1}));
  }
  Status write(const Pair& on, Key key, int64_t offset, uint32_t bytes) {
    const ScatterEntry entry = buffer(bytes);
    return by_client(on, access(Opcode::kWrite, key, offset, {&entry, 1}));
  }
  Status fetch_add(const Pair& on, Key key, int64_t offset, uint64_t add, uint32_t bytes = 8) {
    const ScatterEntry entry = buffer(bytes);
    WorkRequest request = access(Opcode::kFetchAdd, key, offset, {&entry, 1});
    request.operand = add;
    return by_client(on, request);
  }

  Key window(WindowType type = WindowType::kType2) { return *nic_->create_window(lender_, type); }
  static Key next_key(Key key) { return (key & ~kTagMask) | ((key + 1) & kTagMask); }
  // 4 KiB of what is lent, beginning 4 KiB into it.
  WorkRequest binding(const Pair& to, Key window) const {
    return {.opcode = Opcode::kBind,
            .target = to.server,
            .key = window,
            .new_tag = static_cast<uint8_t>(next_key(window)),
            .region_key = parent_,
            .address = lent_at(4096),
            .length = 4096,
            .rights = kRemoteAll};
  }
  Key bind(const Pair& to, Key window) {
    EXPECT_EQ(by_server(to, binding(to, window)), Status::kSuccess);
    return next_key(window);
  }
  static WorkRequest invalidation(Key key) {
    return {.opcode = Opcode::kLocalInvalidate, .key = key};
  }

  QueuePairState state(QueuePair queue_pair) { return *nic_->state(queue_pair); }
  void expect_dead(const Pair& on) {
    EXPECT_EQ(state(on.client), QueuePairState::kError);
    EXPECT_EQ(state(on.server), QueuePairState::kError);
  }
  std::vector<AsyncEvent> events() {
    std::vector<AsyncEvent> all;
    while (std::optional<AsyncEvent> event = nic_->next_event()) all.push_back(*event);
    return all;
  }

  std::unique_ptr<Nic> nic_;
  bool threaded_ = false;
  ProtectionDomain lender_ = {}, borrower_ = {};
  alignas(4096) std::array<std::byte, 3 * kLent> memory_ = {};
  std::span<std::byte> lent_;
  alignas(64) std::array<std::byte, 4096> buffer_ = {};
  Key parent_ = 0, open_ = 0, buffer_key_ = 0;
};

// The suite: instantiated beside each provider.
class Conformance : public NicTest, public testing::WithParamInterface<Provider> {
 protected:
  void SetUp() override {
    open(GetParam().open());
    threaded_ = GetParam().name.find("thread") != std::string::npos;
  }
};

// For NICs that execute chains by themselves.
class ChainConformance : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    if (!nic_->attributes().executes_chains) GTEST_SKIP() << "has no WAIT and ENABLE";
  }
};

}  // namespace memsluice::nic
