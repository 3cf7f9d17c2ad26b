// SPDX-License-Identifier: GPL-2.0
// What the NIC's thread does: which queue is next, and one request after the other.
#include <algorithm>
#include <bit>

#include "daemon/lending/nic/emulated/checks.h"
#include "daemon/lending/nic/emulated/emulated_nic.h"

namespace memsluice::nic {
namespace {

constexpr uint32_t kQuantum = 16;  // requests of one queue before the next has its turn
constexpr uint32_t kMaxBlocks = blocks_for(Opcode::kRead, kMaxScatterEntries);

}  // namespace

bool EmulatedNic::turn() {
  turns_++;
  if (broken_) return false;
  collect_doorbells();
  if (!sleeping_.empty()) collect_sleepers();
  if (options_.schedule_seed) return random_step() || !sleeping_.empty();
  if (ready_.empty()) return !sleeping_.empty();
  QueuePairObject& qp = *ready_.front();
  ready_.pop_front();
  qp.ready = false;
  run(qp, kQuantum);
  return true;
}

bool EmulatedNic::random_step() {
  const size_t choices = ready_.size() + delivering_.size();
  if (choices == 0) return false;
  const size_t choice = random_() % choices;
  if (choice >= ready_.size()) {
    deliver(*delivering_[choice - ready_.size()]);
    return true;
  }
  QueuePairObject& qp = *ready_[choice];
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(choice));
  qp.ready = false;
  run(qp, 1);
  return true;
}

void EmulatedNic::collect_doorbells() {
  for (uint32_t word = 0; word < doorbells_.size(); word++) {
    if (doorbells_[word].load(std::memory_order_relaxed) == 0) continue;
    for (uint64_t bits = doorbells_[word].exchange(0); bits != 0; bits &= bits - 1) {
      const auto number = static_cast<QueuePair>(word * 64 + std::countr_zero(bits));
      if (QueuePairObject* qp = object(number)) make_ready(*qp);
    }
  }
}

void EmulatedNic::collect_sleepers() {
  std::erase_if(sleeping_, [&](QueuePairObject* qp) {
    if (qp->sleeps_until > turns_) return false;
    qp->sleeps_until = 0;
    make_ready(*qp);
    return true;
  });
}

void EmulatedNic::make_ready(QueuePairObject& qp) {
  if (qp.ready || qp.sleeps_until != 0 || broken_) return;
  qp.ready = true;
  ready_.push_back(&qp);
}

void EmulatedNic::run(QueuePairObject& qp, uint32_t most) {
  if (qp.state == QueuePairState::kError) {
    flush(qp);
    flush_receives(qp);
    return;
  }
  for (; qp.state.load(std::memory_order_relaxed) == QueuePairState::kReady; most--) {
    fetch(qp);
    FetchedRequest* request = oldest(qp.send);
    if (!request) return;
    if (most == 0) {
      make_ready(qp);
      return;
    }
    if (!step(qp, *request)) return;  // whoever it waits for makes it ready again
  }
}

FetchedRequest* EmulatedNic::oldest(SendQueue& queue) {
  if (queue.fetch_begin == queue.fetch_end) return nullptr;
  return &queue.fetched[queue.fetch_begin % queue.fetched.size()];
}

void EmulatedNic::fetch(QueuePairObject& qp) {
  SendQueue& queue = qp.send;
  const uint32_t limit =
      queue.managed ? queue.enabled : queue.posted.load(std::memory_order_acquire);
  while (queue.fetch_end - queue.fetch_begin < queue.fetched.size() &&
         !reached(queue.next_fetch, limit))
    fetch_one(queue, limit);
}

void EmulatedNic::fetch_one(SendQueue& queue, uint32_t limit) {
  FetchedRequest& request = queue.fetched[queue.fetch_end++ % queue.fetched.size()];
  request.position = queue.next_fetch;
  request.posted = queue.managed
                       ? !reached(queue.next_fetch, queue.posted.load(std::memory_order_acquire))
                       : true;
  read_blocks(queue, request);
  queue.next_fetch += request.block.blocks;
  // A request that claims more blocks than are enabled ends behind them; its shape is refused.
  if (reached(queue.next_fetch, limit)) queue.next_fetch = limit;
}

void EmulatedNic::read_blocks(const SendQueue& queue, FetchedRequest& request) {
  const uint32_t at = request.position & queue.mask;
  request.block = queue.blocks[at];
  RequestBlock& block = request.block;
  if (block.blocks == 0) block.blocks = 1;
  if (block.entries <= 1) return;
  const uint32_t entries = std::min<uint32_t>(block.entries, kMaxScatterEntries) - 1;
  for (uint32_t i = 0; i < entries; i++) {
    const RequestBlock& source = queue.blocks[(at + 1 + i / 4) & queue.mask];
    request.more[i] = reinterpret_cast<const ScatterEntry*>(&source)[i % 4];
  }
}

std::optional<Status> EmulatedNic::malformed(const QueuePairObject& qp,
                                             const FetchedRequest& request) const {
  const RequestBlock& block = request.block;
  if (fails(Check::request_posted, request.posted)) return Status::kLocalOperationError;
  if (fails(Check::request_index, block.index == static_cast<uint16_t>(request.position)))
    return Status::kLocalOperationError;
  if (fails(Check::request_opcode, is_opcode(block.opcode))) return Status::kLocalOperationError;
  const bool shaped = block.entries <= qp.options.max_scatter_entries &&
                      block.blocks <= kMaxBlocks &&
                      block.blocks >= blocks_for(block.opcode, block.entries);
  if (fails(Check::request_shape, shaped)) return Status::kLocalOperationError;
  const uint32_t at = request.position & qp.send.mask;
  if (fails(Check::request_wrap, at + block.blocks <= qp.send.mask + 1))
    return Status::kLocalOperationError;
  return {};
}

// False: it waits for something.
bool EmulatedNic::step(QueuePairObject& qp, FetchedRequest& request) {
  if (!qp.pending.empty() && qp.pending.back().status != Status::kSuccess) return false;
  if (!is_checked(Check::prefetch)) read_blocks(qp.send, request);
  const RequestBlock& block = request.block;
  counters_.requests++;
  if (std::optional<Status> status = malformed(qp, request)) {
    finish(qp, request, *status, 0);
    return true;
  }
  if ((block.flags & kFlagFence) && fails(Check::fence, qp.reads_under_way == 0)) return false;
  switch (block.opcode) {
    case Opcode::kNop:
      finish(qp, request, Status::kSuccess, 0);
      return true;
    case Opcode::kWait:
      return wait(qp, request);
    case Opcode::kSendEnable:
      finish(qp, request, enable_send(qp, block), 0);
      return true;
    case Opcode::kReceiveEnable:
      finish(qp, request, enable_receive(qp, block), 0);
      return true;
    case Opcode::kBind:
      finish(qp, request, bind(qp, block), 0);
      return true;
    case Opcode::kLocalInvalidate: {
      const bool done =
          keys_.invalidate(block.key, qp.domain, qp.number, (block.flags & kFlagAnyQueuePair) != 0);
      finish(qp, request, done ? Status::kSuccess : Status::kBindError, 0);
      return true;
    }
    default:
      return exchange(qp, request);
  }
}

bool EmulatedNic::wait(QueuePairObject& qp, const FetchedRequest& request) {
  const RequestBlock& block = request.block;
  CompletionRing* awaited = ring(static_cast<CompletionQueue>(block.queue));
  auto& unfinished = const_cast<FetchedRequest&>(request);
  if (!awaited) {
    finish(qp, unfinished, Status::kLocalOperationError, 0);
    return true;
  }
  if (!reached(awaited->produced.load(std::memory_order_relaxed), block.enabled)) {
    if (std::ranges::find(awaited->waiting, qp.number) == awaited->waiting.end())
      awaited->waiting.push_back(qp.number);
    return false;
  }
  counters_.chain_requests++;
  finish(qp, unfinished, Status::kSuccess, 0);
  return true;
}

Status EmulatedNic::enable_send(QueuePairObject& qp, const RequestBlock& block) {
  counters_.chain_requests++;
  QueuePairObject* target = object(static_cast<QueuePair>(block.queue & kQueuePairMask));
  if (!target || fails(Check::enable_managed, target->send.managed) ||
      fails(Check::enable_domain, target->domain == qp.domain))
    return Status::kLocalOperationError;
  if (!reached(target->send.enabled, block.enabled)) target->send.enabled = block.enabled;
  fetch(*target);  // as early as a NIC may: what is written from now on comes too late
  make_ready(*target);
  return Status::kSuccess;
}

Status EmulatedNic::enable_receive(QueuePairObject& qp, const RequestBlock& block) {
  counters_.chain_requests++;
  QueuePairObject* target = object(static_cast<QueuePair>(block.queue & kQueuePairMask));
  if (!target || fails(Check::enable_managed, target->receive.managed) ||
      fails(Check::enable_domain, target->domain == qp.domain))
    return Status::kLocalOperationError;
  if (!reached(target->receive.enabled, block.enabled)) target->receive.enabled = block.enabled;
  return Status::kSuccess;
}

Status EmulatedNic::bind(QueuePairObject& qp, const RequestBlock& block) {
  const QueuePairObject* target = object(static_cast<QueuePair>(block.queue & kQueuePairMask));
  if (!target && is_checked(Check::bind_target)) return Status::kBindError;
  return keys_.bind(block, qp.domain, target ? target->domain : qp.domain) ? Status::kSuccess
                                                                           : Status::kBindError;
}

void EmulatedNic::pop(QueuePairObject& qp) {
  qp.send.fetch_begin++;
}

// Completions come in the order of the requests: behind what is still under way.
void EmulatedNic::finish(QueuePairObject& qp, FetchedRequest& request, Status status,
                         uint32_t bytes) {
  pop(qp);
  if (qp.pending.empty())
    complete(qp, request, status, bytes);
  else
    qp.pending.push_back({request, status, bytes, false, {}});
}

void EmulatedNic::complete(QueuePairObject& qp, const FetchedRequest& request, Status status,
                           uint32_t bytes) {
  const SendQueue& queue = qp.send;
  const uint64_t id = queue.side[request.position & queue.mask].id;
  qp.send.released.store(request.position + request.block.blocks, std::memory_order_release);
  if ((request.block.flags & kFlagSignaled) || status != Status::kSuccess)
    push(qp, *qp.send_ring,
         {.id = id,
          .queue_pair = qp.number,
          .status = status,
          .opcode = request.block.opcode,
          .bytes = bytes});
  if (status == Status::kSuccess) return;
  counters_.refusals++;
  fail_object(qp);
}

void EmulatedNic::deliver(QueuePairObject& qp) {
  const PendingRequest pending = std::move(qp.pending.front());
  qp.pending.pop_front();
  if (qp.pending.empty()) {
    qp.delivering = false;
    std::erase(delivering_, &qp);
  }
  Status status = pending.status;
  if (pending.is_read) {
    qp.reads_under_way--;
    Segments to;
    if (status == Status::kSuccess && collect(qp, pending.request, true, to))
      scatter(pending.result, to);
    else if (status == Status::kSuccess)
      status = Status::kLocalProtectionError;
  }
  complete(qp, pending.request, status, pending.bytes);
  make_ready(qp);
}

void EmulatedNic::push(QueuePairObject& qp, CompletionRing& ring, const Completion& completion) {
  const uint32_t produced = ring.produced.load(std::memory_order_relaxed);
  if (ring.failed) return;
  if (!ring.ignores_overrun &&
      fails(Check::completion_overrun,
            produced - ring.consumed.load(std::memory_order_acquire) <= ring.mask)) {
    overrun(ring);
    return;
  }
  ring.entries[produced & ring.mask] = completion;
  ring.produced.store(produced + 1, std::memory_order_release);
  if (ring.waiting.empty()) return;
  for (QueuePair waiting : ring.waiting)
    if (waiting != qp.number) make_ready(*object(waiting));
  const bool itself = std::ranges::find(ring.waiting, qp.number) != ring.waiting.end();
  ring.waiting.clear();
  if (itself) make_ready(qp);
}

void EmulatedNic::overrun(CompletionRing& ring) {
  ring.failed = true;
  for (uint32_t index = 0; index < owned_rings_.size(); index++)
    if (owned_rings_[index].get() == &ring) report(Event::kCompletionQueueError, index);
  for (const auto& qp : owned_queue_pairs_) {
    if (!qp || (qp->send_ring != &ring && qp->receive_ring != &ring)) continue;
    report(Event::kQueuePairFatal, static_cast<uint32_t>(qp->number));
    fail_object(*qp);
  }
}

void EmulatedNic::fail_object(QueuePairObject& qp) {
  if (qp.state == QueuePairState::kError) return;
  qp.state.store(QueuePairState::kError);
  flush(qp);
  flush_receives(qp);
}

void EmulatedNic::flush(QueuePairObject& qp) {
  SendQueue& queue = qp.send;
  qp.pending.clear();
  qp.reads_under_way = 0;
  if (qp.delivering) {
    qp.delivering = false;
    std::erase(delivering_, &qp);
  }
  queue.fetch_begin = queue.fetch_end;
  const uint32_t posted = queue.posted.load();
  uint32_t position = queue.released.load(std::memory_order_relaxed);
  while (!reached(position, posted)) {
    const PostedRequest& request = queue.side[position & queue.mask];
    position += request.blocks;
    push(qp, *qp.send_ring,
         {.id = request.id, .queue_pair = qp.number, .status = Status::kFlushed});
  }
  queue.next_fetch = queue.enabled = posted;
  queue.released.store(posted, std::memory_order_release);
}

void EmulatedNic::flush_receives(QueuePairObject& qp) {
  ReceiveQueue& queue = qp.receive;
  const uint32_t posted = queue.posted.load();
  uint32_t taken = queue.taken.load(std::memory_order_relaxed);
  for (; taken != posted; taken++)
    push(qp, *qp.receive_ring,
         {.id = queue.ids[taken & queue.mask],
          .queue_pair = qp.number,
          .status = Status::kFlushed,
          .is_receive = true});
  queue.enabled = posted;
  queue.taken.store(taken, std::memory_order_release);
}

void EmulatedNic::report(Event event, uint32_t object) {
  const std::lock_guard lock(mutex_);
  events_.push_back({event, object});
  has_events_.store(true, std::memory_order_release);
}

}  // namespace memsluice::nic
