// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "daemon/lending/nic/emulated/request_layout.h"

namespace memsluice::nic {

// What one thread writes and the other polls has a cache line to itself.
constexpr size_t kCacheLineBytes = 64;

// Whether position @a is not before @b: positions are absolute and wrap at 32 bits.
constexpr bool reached(uint32_t a, uint32_t b) {
  return static_cast<int32_t>(a - b) >= 0;
}

// Completions from the NIC's thread to whoever polls.
struct CompletionRing {
  CompletionRing(uint32_t capacity, bool overrun)
      : entries(capacity), mask(capacity - 1), ignores_overrun(overrun) {}

  std::vector<Completion> entries;
  uint32_t mask;
  bool ignores_overrun;
  alignas(kCacheLineBytes) std::atomic<uint32_t> produced = 0;
  alignas(kCacheLineBytes) std::atomic<uint32_t> consumed = 0;
  // Of the NIC's thread alone:
  alignas(kCacheLineBytes) uint32_t users = 0;
  bool failed = false;
  std::vector<QueuePair> waiting;
};

// What the poster keeps of a request beside the send queue, where nothing can overwrite it.
struct PostedRequest {
  uint64_t id = 0;
  uint8_t blocks = 1;
};

// A request as the NIC has read it: what is written into the queue later is not seen.
struct FetchedRequest {
  uint32_t position = 0;
  bool posted = true;  // false: it was enabled without being posted
  RequestBlock block;
  std::array<ScatterEntry, kMaxScatterEntries + 3> more;  // after the block's own; whole blocks

  ScatterEntry entry(uint32_t number) const { return number == 0 ? block.entry : more[number - 1]; }
};

// A request that has been carried out, but whose result or completion is still under way.
struct PendingRequest {
  FetchedRequest request;
  Status status = Status::kSuccess;
  uint32_t bytes = 0;
  bool is_read = false;           // READ or atomic
  std::vector<std::byte> result;  // to be scattered
};

struct SendQueue {
  SendQueue(uint32_t block_count, bool is_managed, uint32_t prefetch)
      : blocks(new (std::align_val_t(kCacheLineBytes)) RequestBlock[block_count]),
        side(block_count),
        fetched(prefetch),
        mask(block_count - 1),
        managed(is_managed) {}

  struct Free {
    void operator()(RequestBlock* memory) const {
      ::operator delete[](memory, std::align_val_t(kCacheLineBytes));
    }
  };
  std::unique_ptr<RequestBlock[], Free> blocks;
  std::vector<PostedRequest> side;
  std::vector<FetchedRequest> fetched;  // a ring
  uint32_t mask;
  bool managed;
  Key memory_key = 0;
  alignas(kCacheLineBytes) std::atomic<uint32_t> posted = 0;    // blocks
  alignas(kCacheLineBytes) std::atomic<uint32_t> released = 0;  // blocks that may be posted over
  // Of the NIC's thread alone:
  alignas(kCacheLineBytes) uint32_t enabled = 0;
  uint32_t next_fetch = 0;   // block
  uint32_t fetch_begin = 0;  // number of the oldest fetched request
  uint32_t fetch_end = 0;
};

struct ReceiveQueue {
  ReceiveQueue(uint32_t count, uint32_t max_entries, bool is_managed)
      : ids(count),
        entry_counts(count),
        entries(size_t{count} * max_entries),
        stride(max_entries),
        mask(count - 1),
        managed(is_managed) {}

  std::span<const ScatterEntry> at(uint32_t position) const {
    return {entries.data() + size_t{position & mask} * stride, entry_counts[position & mask]};
  }

  std::vector<uint64_t> ids;
  std::vector<uint32_t> entry_counts;
  std::vector<ScatterEntry> entries;
  uint32_t stride;
  uint32_t mask;
  bool managed;
  alignas(kCacheLineBytes) std::atomic<uint32_t> posted = 0;
  alignas(kCacheLineBytes) std::atomic<uint32_t> taken = 0;
  uint32_t enabled = 0;  // of the NIC's thread alone
};

struct QueuePairObject {
  QueuePairObject(QueuePair qp_number, ProtectionDomain in, const QueuePairOptions& with,
                  uint32_t prefetch)
      : number(qp_number),
        domain(in),
        options(with),
        send(with.send_blocks, with.managed_send, prefetch),
        receive(with.receives, with.max_scatter_entries, with.managed_receive) {}

  QueuePair number;
  ProtectionDomain domain;
  QueuePairOptions options;
  SendQueue send;
  ReceiveQueue receive;
  std::atomic<QueuePairState> state = QueuePairState::kInitialized;
  // Of the NIC's thread alone:
  CompletionRing* send_ring = nullptr;
  CompletionRing* receive_ring = nullptr;
  ConnectionOptions connection;
  QueuePair peer = {};
  bool connected = false;
  bool peer_lost = false;
  bool ready = false;  // is in the engine's list of queues that have something to do
  bool delivering = false;
  uint32_t retries_left = 0;
  uint64_t sleeps_until = 0;  // turn of the engine; 0: does not sleep
  std::deque<PendingRequest> pending;
  uint32_t reads_under_way = 0;
};

}  // namespace memsluice::nic
