// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <type_traits>
#include <vector>

#include "daemon/lending/nic/emulated/memory_keys.h"
#include "daemon/lending/nic/emulated/queues.h"

namespace memsluice::nic {

struct EmulatedOptions {
  uint32_t max_queue_pairs = 1024;
  uint32_t max_completion_queues = 1024;
  uint32_t max_keys = 1 << 16;
  uint32_t prefetch_requests = 16;
  // A thread of its own. Otherwise it works in progress().
  bool own_thread = false;
  // Without a thread: each step is one request, or the arrival of one result, of a queue drawn at
  // random from those that have something to do; results arrive late. The same seed and calls give
  // the same run.
  std::optional<uint64_t> schedule_seed = {};
  std::optional<uint64_t> key_seed = {};  // otherwise from the system
};

struct EngineCounters {
  uint64_t requests = 0;        // executed, of any kind
  uint64_t chain_requests = 0;  // WAIT and ENABLE among them
  uint64_t refusals = 0;        // that put a queue pair in error
};

// A NIC in software that holds to the specification. A request is executed in one go; between
// queues there is no order.
class EmulatedNic final : public Nic {
 public:
  explicit EmulatedNic(const EmulatedOptions& options);
  ~EmulatedNic() override;
  EmulatedNic(const EmulatedNic&) = delete;
  EmulatedNic& operator=(const EmulatedNic&) = delete;

  const Attributes& attributes() const override { return attributes_; }
  Result<ProtectionDomain> create_protection_domain() override;
  Result<CompletionQueue> create_completion_queue(const CompletionQueueOptions& options) override;
  Result<QueuePair> create_queue_pair(ProtectionDomain domain,
                                      const QueuePairOptions& options) override;
  Result<void> destroy(ProtectionDomain domain) override;
  Result<void> destroy(CompletionQueue queue) override;
  Result<void> destroy(QueuePair queue_pair) override;
  Result<Key> register_memory(ProtectionDomain domain, std::span<std::byte> memory,
                              Rights rights) override;
  Result<void> deregister_memory(Key key) override;
  Result<Key> create_window(ProtectionDomain domain, WindowType type) override;
  Result<void> destroy_window(Key key) override;
  Result<void> revoke_window(Key key) override;
  Result<void> connect(QueuePair queue_pair, QueuePair peer,
                       const ConnectionOptions& options) override;
  Result<void> fail(QueuePair queue_pair) override;
  Result<void> reset(QueuePair queue_pair) override;
  Result<QueuePairState> state(QueuePair queue_pair) override;
  Result<SendQueueMemory> send_queue_memory(QueuePair queue_pair) override;
  std::optional<FieldPlace> field_place(Opcode opcode, Field field) const override {
    return field_place_of(opcode, field);
  }
  uint32_t blocks_of(Opcode opcode, uint32_t scatter_entries) const override {
    return blocks_for(opcode, scatter_entries);
  }
  Posted post_send(QueuePair queue_pair, std::span<const WorkRequest> requests) override;
  Posted post_receive(QueuePair queue_pair, std::span<const ReceiveRequest> requests) override;
  size_t poll(CompletionQueue queue, std::span<Completion> completions) override;
  std::optional<AsyncEvent> next_event() override;
  bool progress() override;

  // Faults on order. The peer of @queue_pair answers no more.
  Result<void> lose_peer(QueuePair queue_pair);
  // As after a firmware crash: no queue completes anything any more, every key is dead, and all
  // that is left is to destroy.
  void break_device();

  EngineCounters counters();
  // CPU time of its own thread so far; 0: it has none.
  uint64_t thread_cpu_ns();

 private:
  struct Served {
    Status status = Status::kSuccess;
    bool receiver_not_ready = false;
  };
  struct Segment {
    std::byte* memory;
    uint32_t bytes;
  };
  struct Segments {
    std::array<Segment, kMaxScatterEntries> parts;  // the first @count
    uint32_t count = 0;
    uint64_t bytes = 0;
  };

  // Calls of other threads, carried out by the engine's.
  template <typename Call>
  auto on_engine(Call call) -> std::invoke_result_t<Call>;
  void run_calls();
  void serve();
  void idle(uint32_t turns);
  void wake_engine();

  Result<QueuePairObject*> find(QueuePair number);
  Result<CompletionRing*> find(CompletionQueue number);
  CompletionRing* ring(CompletionQueue number);
  Result<void> check_options(ProtectionDomain domain, const QueuePairOptions& options);
  Result<void> check_alive() const;
  QueuePairObject* object(QueuePair number) const;
  Result<QueuePair> create_on_engine(ProtectionDomain domain, const QueuePairOptions& options);

  // engine.cc
  bool turn();
  bool random_step();
  void collect_doorbells();
  void collect_sleepers();
  void make_ready(QueuePairObject& qp);
  void run(QueuePairObject& qp, uint32_t most);
  void fetch(QueuePairObject& qp);
  void fetch_one(SendQueue& queue, uint32_t limit);
  static void read_blocks(const SendQueue& queue, FetchedRequest& request);
  static FetchedRequest* oldest(SendQueue& queue);
  bool step(QueuePairObject& qp, FetchedRequest& request);
  std::optional<Status> malformed(const QueuePairObject& qp, const FetchedRequest& request) const;
  bool wait(QueuePairObject& qp, const FetchedRequest& request);
  Status enable_send(QueuePairObject& qp, const RequestBlock& block);
  Status enable_receive(QueuePairObject& qp, const RequestBlock& block);
  Status bind(QueuePairObject& qp, const RequestBlock& block);
  void finish(QueuePairObject& qp, FetchedRequest& request, Status status, uint32_t bytes);
  void pop(QueuePairObject& qp);
  void complete(QueuePairObject& qp, const FetchedRequest& request, Status status, uint32_t bytes);
  void deliver(QueuePairObject& qp);
  void push(QueuePairObject& qp, CompletionRing& ring, const Completion& completion);
  void overrun(CompletionRing& ring);
  void fail_object(QueuePairObject& qp);
  void flush(QueuePairObject& qp);
  void flush_receives(QueuePairObject& qp);
  void report(Event event, uint32_t object);

  // transport.cc
  bool exchange(QueuePairObject& qp, FetchedRequest& request);
  bool not_ready(QueuePairObject& qp, FetchedRequest& request);
  Served serve_write(QueuePairObject& server, const RequestBlock& block, const Segments& from);
  Served serve_send(QueuePairObject& server, const RequestBlock& block, const Segments& from);
  Served serve_read(QueuePairObject& server, const RequestBlock& block, uint64_t bytes,
                    const std::byte*& memory);
  Served serve_atomic(QueuePairObject& server, const RequestBlock& block, uint64_t& before);
  Served refuse(QueuePairObject& server, Status status);
  bool collect(const QueuePairObject& qp, const FetchedRequest& request, bool writes,
               Segments& segments) const;
  void receive_failed(QueuePairObject& server, const RequestBlock& block, Status status);
  QueuePairObject* peer_of(QueuePairObject& qp) const;
  void result(QueuePairObject& qp, FetchedRequest& request, const Segments& to,
              std::span<const std::byte> data);
  static void copy(const Segments& from, const Segments& to);
  static void scatter(std::span<const std::byte> from, const Segments& to);

  Attributes attributes_;
  EmulatedOptions options_;
  MemoryKeys keys_;
  std::mt19937_64 random_;
  std::vector<bool> domains_;
  std::vector<std::unique_ptr<CompletionRing>> owned_rings_;
  std::vector<std::unique_ptr<QueuePairObject>> owned_queue_pairs_;
  // The same for threads that post and poll.
  std::vector<std::atomic<CompletionRing*>> rings_;
  std::vector<std::atomic<QueuePairObject*>> queue_pairs_;
  std::vector<std::atomic<uint64_t>> doorbells_;  // a bit for each queue pair
  std::vector<uint32_t> free_numbers_;

  std::deque<QueuePairObject*> ready_;
  std::vector<QueuePairObject*> delivering_;
  std::vector<QueuePairObject*> sleeping_;
  uint64_t turns_ = 0;
  bool broken_ = false;
  EngineCounters counters_;

  std::mutex mutex_;  // of the next three
  std::condition_variable called_;
  std::vector<std::function<void()>> calls_;
  std::deque<AsyncEvent> events_;
  std::atomic<bool> has_calls_ = false;
  std::atomic<bool> has_events_ = false;
  std::atomic<bool> asleep_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace memsluice::nic
