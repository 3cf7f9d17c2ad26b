// SPDX-License-Identifier: GPL-2.0
// Requests that go to the peer, and how the peer's side serves them.
#include <algorithm>
#include <cstring>

#include "daemon/lending/nic/emulated/checks.h"
#include "daemon/lending/nic/emulated/emulated_nic.h"

namespace memsluice::nic {
namespace {

constexpr uint64_t kSleepTurns = 256;      // before a receiver that was not ready is tried again
constexpr uint64_t kRandomSleepTurns = 8;  // the same where a turn is one request
constexpr uint8_t kRetriesForEver = 7;

bool is_word(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory) % 8 == 0;
}

// An aligned word is read and written whole, and orders what was written before it: the CPU of a
// memory node publishes entries of a ring so.
void move_bytes(std::byte* to, const std::byte* from, uint32_t bytes) {
  if (bytes == 8 && is_word(to) && is_word(from)) {
    const auto* source = reinterpret_cast<const uint64_t*>(from);
    const uint64_t word = __atomic_load_n(source, __ATOMIC_ACQUIRE);
    __atomic_store_n(reinterpret_cast<uint64_t*>(to), word, __ATOMIC_RELEASE);
    return;
  }
  std::memmove(to, from, bytes);
}

bool is_atomic(Opcode opcode) {
  return opcode == Opcode::kCompareSwap || opcode == Opcode::kFetchAdd;
}

Accessor accessor(const QueuePairObject& qp) {
  return {qp.domain, qp.number, qp.options.remote_rights};
}

}  // namespace

bool EmulatedNic::collect(const QueuePairObject& qp, const FetchedRequest& request, bool writes,
                          Segments& segments) const {
  for (uint32_t i = 0; i < request.block.entries; i++) {
    const ScatterEntry entry = request.entry(i);
    if (entry.bytes == 0) continue;
    std::byte* memory = keys_.local(qp.domain, entry, writes);
    if (!memory) return false;
    segments.parts[segments.count++] = {memory, entry.bytes};
    segments.bytes += entry.bytes;
  }
  return true;
}

void EmulatedNic::copy(const Segments& from, const Segments& to) {
  uint32_t in = 0, out = 0, read = 0, written = 0;
  while (in < from.count && out < to.count) {
    const Segment& source = from.parts[in];
    const Segment& target = to.parts[out];
    const uint32_t bytes = std::min(source.bytes - read, target.bytes - written);
    move_bytes(target.memory + written, source.memory + read, bytes);
    read += bytes;
    written += bytes;
    if (read == source.bytes) in++, read = 0;
    if (written == target.bytes) out++, written = 0;
  }
}

void EmulatedNic::scatter(std::span<const std::byte> from, const Segments& to) {
  Segments source;
  source.parts[0] = {const_cast<std::byte*>(from.data()), static_cast<uint32_t>(from.size())};
  source.count = from.empty() ? 0 : 1;
  copy(source, to);
}

QueuePairObject* EmulatedNic::peer_of(QueuePairObject& qp) const {
  QueuePairObject* peer = object(qp.peer);
  if (!peer || qp.peer_lost || peer->peer_lost || peer->state != QueuePairState::kReady ||
      peer->peer != qp.number)
    return nullptr;
  return peer;
}

// False: it waits for something.
bool EmulatedNic::exchange(QueuePairObject& qp, FetchedRequest& request) {
  const RequestBlock& block = request.block;
  const bool reads = block.opcode == Opcode::kRead || is_atomic(block.opcode);
  if (reads && fails(Check::reads_issued, qp.reads_under_way < qp.connection.max_reads_under_way))
    return false;
  Segments local;
  if (!collect(qp, request, reads, local)) {
    finish(qp, request, Status::kLocalProtectionError, 0);
    return true;
  }
  if (is_atomic(block.opcode) && fails(Check::atomic_length, local.bytes == 8)) {
    finish(qp, request, Status::kLocalLengthError, 0);
    return true;
  }
  QueuePairObject* server = peer_of(qp);
  if (!server) {
    finish(qp, request, Status::kRetryExceeded, 0);
    return true;
  }
  if (reads && fails(Check::reads_served,
                     qp.reads_under_way < server->connection.max_peer_reads_under_way)) {
    finish(qp, request, refuse(*server, Status::kRemoteInvalidRequest).status, 0);
    return true;
  }
  const std::byte* source = nullptr;
  uint64_t before = 0;
  uint64_t bytes = local.bytes;
  Served served;
  if (block.opcode == Opcode::kRead) {
    served = serve_read(*server, block, bytes, source);
  } else if (reads) {
    served = serve_atomic(*server, block, before);
    source = reinterpret_cast<const std::byte*>(&before);
    bytes = sizeof(before);
  } else if (block.opcode == Opcode::kWrite) {
    served = serve_write(*server, block, local);
  } else {
    served = serve_send(*server, block, local);
  }
  if (served.receiver_not_ready) return not_ready(qp, request);
  qp.retries_left = qp.connection.receiver_not_ready_retries;
  const bool succeeded = served.status == Status::kSuccess;
  if (options_.schedule_seed) {
    PendingRequest pending{request, served.status, static_cast<uint32_t>(bytes), reads, {}};
    if (reads && succeeded && source) pending.result.assign(source, source + bytes);
    if (reads) qp.reads_under_way++;
    pop(qp);
    qp.pending.push_back(std::move(pending));
    if (!qp.delivering) delivering_.push_back(&qp);
    qp.delivering = true;
    return true;
  }
  if (reads && succeeded && source) scatter({source, bytes}, local);
  finish(qp, request, served.status, static_cast<uint32_t>(bytes));
  return true;
}

bool EmulatedNic::not_ready(QueuePairObject& qp, FetchedRequest& request) {
  if (qp.connection.receiver_not_ready_retries != kRetriesForEver && qp.retries_left-- == 0) {
    finish(qp, request, Status::kReceiverNotReady, 0);
    return true;
  }
  qp.sleeps_until = turns_ + (options_.schedule_seed ? kRandomSleepTurns : kSleepTurns);
  sleeping_.push_back(&qp);
  return false;
}

// The peer learns of it, and neither side's queue pair is of use any more.
EmulatedNic::Served EmulatedNic::refuse(QueuePairObject& server, Status status) {
  report(Event::kQueuePairAccessError, static_cast<uint32_t>(server.number));
  fail_object(server);
  return {status};
}

EmulatedNic::Served EmulatedNic::serve_write(QueuePairObject& server, const RequestBlock& block,
                                             const Segments& from) {
  if (from.bytes == 0) return {};  // no key is looked at
  std::byte* memory =
      keys_.remote(accessor(server), block.key, block.remote_address, from.bytes, kRemoteWrite);
  if (!memory) return refuse(server, Status::kRemoteAccessError);
  Segments to;
  to.parts[0] = {memory, static_cast<uint32_t>(from.bytes)};
  to.count = 1;
  copy(from, to);
  return {};
}

EmulatedNic::Served EmulatedNic::serve_read(QueuePairObject& server, const RequestBlock& block,
                                            uint64_t bytes, const std::byte*& memory) {
  if (bytes == 0) return {};
  memory = keys_.remote(accessor(server), block.key, block.remote_address, bytes, kRemoteRead);
  if (!memory) return refuse(server, Status::kRemoteAccessError);
  return {};
}

EmulatedNic::Served EmulatedNic::serve_atomic(QueuePairObject& server, const RequestBlock& block,
                                              uint64_t& before) {
  std::byte* memory =
      keys_.remote(accessor(server), block.key, block.remote_address, 8, kRemoteAtomic);
  if (!memory) return refuse(server, Status::kRemoteAccessError);
  // The memory under a zero-based window need not be aligned as its addresses are.
  if (fails(Check::atomic_alignment, block.remote_address % 8 == 0 && is_word(memory)))
    return refuse(server, Status::kRemoteInvalidRequest);
  auto* word = reinterpret_cast<uint64_t*>(memory);
  if (block.opcode == Opcode::kFetchAdd) {
    before = __atomic_fetch_add(word, block.operand, __ATOMIC_ACQ_REL);
    return {};
  }
  before = block.operand;
  __atomic_compare_exchange_n(word, &before, block.swap, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return {};
}

EmulatedNic::Served EmulatedNic::serve_send(QueuePairObject& server, const RequestBlock& block,
                                            const Segments& from) {
  ReceiveQueue& queue = server.receive;
  const uint32_t position = queue.taken.load(std::memory_order_relaxed);
  const uint32_t posted = queue.posted.load(std::memory_order_acquire);
  const bool enabled = !queue.managed || !reached(position, queue.enabled);
  if (reached(position, posted) || fails(Check::receive_enabled, enabled)) return {{}, true};
  Segments to;
  bool allowed = true;
  for (const ScatterEntry& entry : queue.at(position)) {
    if (entry.bytes == 0) continue;
    std::byte* memory = keys_.local(server.domain, entry, true);
    if (!memory) {
      allowed = false;
      break;
    }
    to.parts[to.count++] = {memory, entry.bytes};
    to.bytes += entry.bytes;
  }
  if (!allowed) {
    receive_failed(server, block, Status::kLocalProtectionError);
    return {Status::kRemoteOperationError};
  }
  if (fails(Check::receive_length, from.bytes <= to.bytes)) {
    receive_failed(server, block, Status::kLocalLengthError);
    return {Status::kRemoteInvalidRequest};
  }
  const bool invalidates = block.opcode == Opcode::kSendWithInvalidate;
  if (invalidates && !keys_.invalidate(block.key, server.domain, server.number, false))
    return refuse(server, Status::kRemoteAccessError);
  copy(from, to);
  const uint64_t id = queue.ids[position & queue.mask];
  queue.taken.store(position + 1, std::memory_order_release);
  push(server, *server.receive_ring,
       {.id = id,
        .queue_pair = server.number,
        .opcode = block.opcode,
        .is_receive = true,
        .invalidated = invalidates,
        .invalidated_key = invalidates ? block.key : 0,
        .bytes = static_cast<uint32_t>(from.bytes)});
  return {};
}

void EmulatedNic::receive_failed(QueuePairObject& server, const RequestBlock& block,
                                 Status status) {
  ReceiveQueue& queue = server.receive;
  const uint32_t position = queue.taken.load(std::memory_order_relaxed);
  queue.taken.store(position + 1, std::memory_order_release);
  push(server, *server.receive_ring,
       {.id = queue.ids[position & queue.mask],
        .queue_pair = server.number,
        .status = status,
        .opcode = block.opcode,
        .is_receive = true});
  fail_object(server);
}

}  // namespace memsluice::nic
