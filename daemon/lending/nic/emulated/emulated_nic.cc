// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/nic/emulated/emulated_nic.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <future>
#include <numeric>

#include "daemon/lending/nic/emulated/checks.h"

namespace memsluice::nic {
namespace {

constexpr uint32_t kMaxDomains = 1024;
constexpr uint32_t kMaxCompletions = 1 << 20;
constexpr uint32_t kMaxSendBlocks = 1 << 15;
constexpr uint32_t kMaxReceives = 1 << 15;
constexpr uint32_t kMaxReads = 16;
// A NIC that has nothing to do looks around for so long before it gives the CPU away each time, and
// for so long before it sleeps.
constexpr uint32_t kBusyTurns = 1000;
constexpr uint32_t kYieldTurns = 20000;

uint64_t system_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

Error out_of(std::string_view what, size_t most) {
  return {ErrorCode::kUnavailable, std::string(what), fmt::format("all {} are in use", most)};
}

bool is_ring_size(uint32_t entries, uint32_t most) {
  return std::has_single_bit(entries) && entries <= most;
}

}  // namespace

EmulatedNic::EmulatedNic(const EmulatedOptions& options)
    : attributes_{.max_queue_pairs = options.max_queue_pairs,
                  .max_completion_queues = options.max_completion_queues,
                  .max_completions = kMaxCompletions,
                  .max_keys = options.max_keys,
                  .max_send_blocks = kMaxSendBlocks,
                  .max_receives = kMaxReceives,
                  .max_scatter_entries = kMaxScatterEntries,
                  .max_reads_under_way = kMaxReads,
                  .block_bytes = kBlockBytes,
                  .prefetch_requests = options.prefetch_requests,
                  .executes_chains = true},
      options_(options),
      keys_(options.max_keys, options.key_seed.value_or(system_seed())),
      random_(options.schedule_seed.value_or(0)),
      domains_(kMaxDomains),
      owned_rings_(options.max_completion_queues),
      owned_queue_pairs_(options.max_queue_pairs),
      rings_(options.max_completion_queues),
      queue_pairs_(options.max_queue_pairs),
      doorbells_((options.max_queue_pairs + 63) / 64),
      free_numbers_(options.max_queue_pairs) {
  std::iota(free_numbers_.rbegin(), free_numbers_.rend(), 0);
  if (options_.own_thread) thread_ = std::thread([this] { serve(); });
}

EmulatedNic::~EmulatedNic() {
  if (!thread_.joinable()) return;
  stop_ = true;
  wake_engine();
  thread_.join();
}

template <typename Call>
auto EmulatedNic::on_engine(Call call) -> std::invoke_result_t<Call> {
  if (!options_.own_thread) return call();
  std::packaged_task<std::invoke_result_t<Call>()> task(std::move(call));
  auto done = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    calls_.emplace_back([&task] { task(); });
    has_calls_ = true;
  }
  wake_engine();
  return done.get();
}

void EmulatedNic::run_calls() {
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
    has_calls_ = false;
  }
  for (const std::function<void()>& call : calls) call();
}

void EmulatedNic::serve() {
  uint32_t idle_turns = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    if (has_calls_.load(std::memory_order_relaxed)) run_calls();
    idle_turns = turn() ? 0 : idle_turns + 1;
    if (idle_turns > kBusyTurns && sleeping_.empty()) idle(idle_turns);
  }
  run_calls();
}

void EmulatedNic::idle(uint32_t turns) {
  if (turns < kYieldTurns) {
    ::sched_yield();
    return;
  }
  std::unique_lock lock(mutex_);
  asleep_ = true;
  // Whoever rings a doorbell after this look sees asleep_.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  called_.wait(lock, [this] {
    return !asleep_ || has_calls_ || stop_ ||
           std::ranges::any_of(doorbells_, [](const auto& bits) { return bits.load() != 0; });
  });
  asleep_ = false;
}

void EmulatedNic::wake_engine() {
  const std::lock_guard lock(mutex_);
  asleep_ = false;
  called_.notify_one();
}

QueuePairObject* EmulatedNic::object(QueuePair number) const {
  const auto index = static_cast<uint32_t>(number);
  return index < queue_pairs_.size() ? queue_pairs_[index].load(std::memory_order_acquire)
                                     : nullptr;
}

CompletionRing* EmulatedNic::ring(CompletionQueue number) {
  const auto index = static_cast<uint32_t>(number);
  return index < rings_.size() ? rings_[index].load(std::memory_order_acquire) : nullptr;
}

Result<QueuePairObject*> EmulatedNic::find(QueuePair number) {
  if (QueuePairObject* found = object(number)) return found;
  return Error{ErrorCode::kNotFound, fmt::format("queue pair {}", static_cast<uint32_t>(number)),
               "does not exist"};
}

Result<CompletionRing*> EmulatedNic::find(CompletionQueue number) {
  if (CompletionRing* found = ring(number)) return found;
  return Error{ErrorCode::kNotFound,
               fmt::format("completion queue {}", static_cast<uint32_t>(number)), "does not exist"};
}

Result<void> EmulatedNic::check_alive() const {
  if (broken_)
    return Error{ErrorCode::kUnavailable, "NIC", "has failed", "destroy what it has, and open it"};
  return {};
}

Result<ProtectionDomain> EmulatedNic::create_protection_domain() {
  return on_engine([&]() -> Result<ProtectionDomain> {
    const auto place = std::ranges::find(domains_, false);
    if (place == domains_.end()) return out_of("protection domains", domains_.size());
    *place = true;
    return static_cast<ProtectionDomain>(place - domains_.begin());
  });
}

Result<void> EmulatedNic::destroy(ProtectionDomain domain) {
  return on_engine([&]() -> Result<void> {
    const auto index = static_cast<uint32_t>(domain);
    const std::string name = fmt::format("protection domain {}", index);
    if (index >= domains_.size() || !domains_[index])
      return Error{ErrorCode::kNotFound, name, "does not exist"};
    const bool has_queues = std::ranges::any_of(
        owned_queue_pairs_, [&](const auto& qp) { return qp && qp->domain == domain; });
    if (fails(Check::domain_in_use, !has_queues && !keys_.uses(domain)))
      return Error{ErrorCode::kConflict, name, "has queue pairs, regions or windows"};
    domains_[index] = false;
    return {};
  });
}

Result<CompletionQueue> EmulatedNic::create_completion_queue(
    const CompletionQueueOptions& options) {
  return on_engine([&]() -> Result<CompletionQueue> {
    if (!is_ring_size(options.entries, kMaxCompletions))
      return Error{
          ErrorCode::kBadRequest, "completion queue",
          fmt::format("{} entries: a power of two up to {}", options.entries, kMaxCompletions)};
    const auto place =
        std::ranges::find_if(owned_rings_, [](const auto& ring) { return ring == nullptr; });
    if (place == owned_rings_.end()) return out_of("completion queues", owned_rings_.size());
    *place = std::make_unique<CompletionRing>(options.entries, options.ignores_overrun);
    const auto index = static_cast<uint32_t>(place - owned_rings_.begin());
    rings_[index].store(place->get(), std::memory_order_release);
    return static_cast<CompletionQueue>(index);
  });
}

Result<void> EmulatedNic::destroy(CompletionQueue queue) {
  return on_engine([&]() -> Result<void> {
    Result<CompletionRing*> ring = find(queue);
    if (!ring.ok()) return std::move(ring).error();
    const auto index = static_cast<uint32_t>(queue);
    if (fails(Check::completions_in_use, (*ring)->users == 0))
      return Error{ErrorCode::kConflict, fmt::format("completion queue {}", index),
                   "queue pairs complete to it"};
    for (QueuePair waiting : (*ring)->waiting)
      if (QueuePairObject* qp = object(waiting)) make_ready(*qp);
    rings_[index] = nullptr;
    owned_rings_[index].reset();
    return {};
  });
}

Result<void> EmulatedNic::check_options(ProtectionDomain domain, const QueuePairOptions& options) {
  const auto index = static_cast<uint32_t>(domain);
  if (index >= domains_.size() || !domains_[index])
    return Error{ErrorCode::kNotFound, fmt::format("protection domain {}", index),
                 "does not exist"};
  for (CompletionQueue queue : {options.send_completions, options.receive_completions})
    if (Result<CompletionRing*> found = find(queue); !found.ok()) return std::move(found).error();
  if (!is_ring_size(options.send_blocks, kMaxSendBlocks))
    return Error{
        ErrorCode::kBadRequest, "send queue",
        fmt::format("{} blocks: a power of two up to {}", options.send_blocks, kMaxSendBlocks)};
  if (!is_ring_size(options.receives, kMaxReceives))
    return Error{
        ErrorCode::kBadRequest, "receive queue",
        fmt::format("{} entries: a power of two up to {}", options.receives, kMaxReceives)};
  if (options.max_scatter_entries < 1 || options.max_scatter_entries > kMaxScatterEntries)
    return Error{ErrorCode::kBadRequest, "queue pair",
                 fmt::format("{} scatter entries: 1 to {}", options.max_scatter_entries,
                             kMaxScatterEntries)};
  return {};
}

Result<QueuePair> EmulatedNic::create_queue_pair(ProtectionDomain domain,
                                                 const QueuePairOptions& options) {
  return on_engine([&] { return create_on_engine(domain, options); });
}

Result<QueuePair> EmulatedNic::create_on_engine(ProtectionDomain domain,
                                                const QueuePairOptions& options) {
  if (Result<void> alive = check_alive(); !alive.ok()) return std::move(alive).error();
  if (Result<void> good = check_options(domain, options); !good.ok())
    return std::move(good).error();
  if (free_numbers_.empty()) return out_of("queue pairs", queue_pairs_.size());
  const uint32_t index = free_numbers_.back();
  auto qp = std::make_unique<QueuePairObject>(static_cast<QueuePair>(index), domain, options,
                                              options_.prefetch_requests);
  const std::span<RequestBlock> blocks(qp->send.blocks.get(), options.send_blocks);
  // Rule 5 of chains: what a request's fields are written through has no rights from outside.
  Result<Key> key = keys_.add_region(domain, std::as_writable_bytes(blocks), kLocalWrite);
  if (!key.ok()) return std::move(key).error();
  qp->send.memory_key = *key;
  qp->send_ring = ring(options.send_completions);
  qp->receive_ring = ring(options.receive_completions);
  qp->send_ring->users++;
  qp->receive_ring->users++;
  free_numbers_.pop_back();
  queue_pairs_[index].store(qp.get(), std::memory_order_release);
  owned_queue_pairs_[index] = std::move(qp);
  return static_cast<QueuePair>(index);
}

Result<void> EmulatedNic::destroy(QueuePair queue_pair) {
  return on_engine([&]() -> Result<void> {
    Result<QueuePairObject*> found = find(queue_pair);
    if (!found.ok()) return std::move(found).error();
    QueuePairObject* qp = *found;
    const auto index = static_cast<uint32_t>(queue_pair);
    if (fails(Check::queue_pair_in_use, !keys_.uses(queue_pair)))
      return Error{ErrorCode::kConflict, fmt::format("queue pair {}", index), "a window serves it",
                   "invalidate or revoke the window first"};
    std::erase(ready_, qp);
    std::erase(delivering_, qp);
    std::erase(sleeping_, qp);
    for (const auto& ring : owned_rings_)
      if (ring) std::erase(ring->waiting, queue_pair);
    qp->send_ring->users--;
    qp->receive_ring->users--;
    Result<void> removed = keys_.remove_region(qp->send.memory_key);
    queue_pairs_[index] = nullptr;
    owned_queue_pairs_[index].reset();
    // Late: the longest unused number is taken first.
    free_numbers_.insert(free_numbers_.begin(), index);
    return removed;
  });
}

Result<Key> EmulatedNic::register_memory(ProtectionDomain domain, std::span<std::byte> memory,
                                         Rights rights) {
  return on_engine([&]() -> Result<Key> {
    if (Result<void> alive = check_alive(); !alive.ok()) return std::move(alive).error();
    return keys_.add_region(domain, memory, rights);
  });
}

Result<void> EmulatedNic::deregister_memory(Key key) {
  return on_engine([&] { return keys_.remove_region(key); });
}

Result<Key> EmulatedNic::create_window(ProtectionDomain domain, WindowType type) {
  return on_engine([&]() -> Result<Key> {
    if (Result<void> alive = check_alive(); !alive.ok()) return std::move(alive).error();
    return keys_.add_window(domain, type);
  });
}

Result<void> EmulatedNic::destroy_window(Key key) {
  return on_engine([&] { return keys_.remove_window(key); });
}

Result<void> EmulatedNic::revoke_window(Key key) {
  return on_engine([&] { return keys_.revoke_window(key); });
}

Result<void> EmulatedNic::connect(QueuePair queue_pair, QueuePair peer,
                                  const ConnectionOptions& options) {
  return on_engine([&]() -> Result<void> {
    if (Result<void> alive = check_alive(); !alive.ok()) return alive;
    Result<QueuePairObject*> qp = find(queue_pair);
    if (!qp.ok()) return std::move(qp).error();
    if (Result<QueuePairObject*> other = find(peer); !other.ok()) return std::move(other).error();
    const std::string name = fmt::format("queue pair {}", static_cast<uint32_t>(queue_pair));
    if ((*qp)->state != QueuePairState::kInitialized)
      return Error{ErrorCode::kConflict, name, "is connected already", "reset it first"};
    if (options.max_reads_under_way < 1)
      return Error{ErrorCode::kBadRequest, name, "no read under way is allowed"};
    if (options.max_reads_under_way > kMaxReads || options.max_peer_reads_under_way > kMaxReads)
      return Error{ErrorCode::kBadRequest, name,
                   fmt::format("more than {} reads under way", kMaxReads)};
    if (options.receiver_not_ready_retries > 7)
      return Error{ErrorCode::kBadRequest, name, "more than 7 retries of a receiver"};
    (*qp)->peer = peer;
    (*qp)->connection = options;
    (*qp)->retries_left = options.receiver_not_ready_retries;
    (*qp)->state = QueuePairState::kReady;
    make_ready(**qp);
    return {};
  });
}

Result<void> EmulatedNic::fail(QueuePair queue_pair) {
  return on_engine([&]() -> Result<void> {
    Result<QueuePairObject*> qp = find(queue_pair);
    if (!qp.ok()) return std::move(qp).error();
    fail_object(**qp);
    return {};
  });
}

Result<void> EmulatedNic::reset(QueuePair queue_pair) {
  return on_engine([&]() -> Result<void> {
    Result<QueuePairObject*> found = find(queue_pair);
    if (!found.ok()) return std::move(found).error();
    QueuePairObject& qp = **found;
    std::erase(sleeping_, &qp);
    qp.pending.clear();
    qp.reads_under_way = 0;
    qp.sleeps_until = 0;
    qp.peer_lost = false;
    SendQueue& send = qp.send;
    const uint32_t posted = send.posted.load(std::memory_order_acquire);
    send.next_fetch = send.enabled = posted;
    send.fetch_begin = send.fetch_end;
    send.released.store(posted, std::memory_order_release);
    qp.receive.enabled = qp.receive.posted.load(std::memory_order_acquire);
    qp.receive.taken.store(qp.receive.enabled, std::memory_order_release);
    qp.state = QueuePairState::kInitialized;
    return {};
  });
}

Result<QueuePairState> EmulatedNic::state(QueuePair queue_pair) {
  Result<QueuePairObject*> qp = find(queue_pair);
  if (!qp.ok()) return std::move(qp).error();
  return (*qp)->state.load(std::memory_order_acquire);
}

Result<SendQueueMemory> EmulatedNic::send_queue_memory(QueuePair queue_pair) {
  Result<QueuePairObject*> qp = find(queue_pair);
  if (!qp.ok()) return std::move(qp).error();
  return SendQueueMemory{reinterpret_cast<uint64_t>((*qp)->send.blocks.get()),
                         (*qp)->options.send_blocks, (*qp)->send.memory_key};
}

std::optional<AsyncEvent> EmulatedNic::next_event() {
  if (!has_events_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return {};
  const AsyncEvent event = events_.front();
  events_.pop_front();
  has_events_ = !events_.empty();
  return event;
}

bool EmulatedNic::progress() {
  return !options_.own_thread && turn();
}

Result<void> EmulatedNic::lose_peer(QueuePair queue_pair) {
  return on_engine([&]() -> Result<void> {
    Result<QueuePairObject*> qp = find(queue_pair);
    if (!qp.ok()) return std::move(qp).error();
    (*qp)->peer_lost = true;
    return {};
  });
}

void EmulatedNic::break_device() {
  on_engine([&] {
    broken_ = true;
    for (const auto& qp : owned_queue_pairs_)
      if (qp) qp->state = QueuePairState::kError;
    ready_.clear();
    delivering_.clear();
    sleeping_.clear();
    report(Event::kDeviceFatal, 0);
  });
}

EngineCounters EmulatedNic::counters() {
  return on_engine([&] { return counters_; });
}

uint64_t EmulatedNic::thread_cpu_ns() {
  clockid_t clock = {};
  timespec time = {};
  if (!thread_.joinable() || ::pthread_getcpuclockid(thread_.native_handle(), &clock) != 0 ||
      ::clock_gettime(clock, &time) != 0)
    return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace memsluice::nic
