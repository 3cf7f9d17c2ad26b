// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "daemon/base/result.h"
#include "daemon/lending/nic/work_request.h"

namespace memsluice::nic {

struct Attributes {
  uint32_t max_queue_pairs = 0;
  uint32_t max_completion_queues = 0;
  uint32_t max_completions = 0;      // of one queue
  uint32_t max_keys = 0;             // regions and windows
  uint32_t max_send_blocks = 0;      // of one queue
  uint32_t max_receives = 0;         // of one queue
  uint32_t max_scatter_entries = 0;  // of one request
  uint32_t max_reads_under_way = 0;  // READs and atomics of one queue pair
  uint32_t block_bytes = 0;          // a send queue is made of blocks
  uint32_t prefetch_requests = 0;    // a NIC may hold so many requests that it has not executed
  bool executes_chains = false;      // WAIT and ENABLE, managed queues, BIND for another queue pair
};

struct CompletionQueueOptions {
  uint32_t entries = 256;
  // Only counted, by WAIT: what nobody polls is overwritten.
  bool ignores_overrun = false;
};

struct QueuePairOptions {
  CompletionQueue send_completions = {};
  CompletionQueue receive_completions = {};
  uint32_t send_blocks = 256;  // a power of two
  uint32_t receives = 256;     // a power of two
  uint32_t max_scatter_entries = 4;
  // Requests of a managed queue wait for an ENABLE, and are not read by the NIC before.
  bool managed_send = false;
  bool managed_receive = false;
  // What requests from the peer may do, beside the rights of the key.
  Rights remote_rights = kRemoteAll;
};

struct ConnectionOptions {
  uint8_t max_reads_under_way = 16;        // of this side
  uint8_t max_peer_reads_under_way = 16;   // that this side serves
  uint8_t receiver_not_ready_retries = 3;  // 7: for ever
};

enum class QueuePairState : uint8_t { kInitialized, kReady, kError };

enum class WindowType : uint8_t { kType1 = 1, kType2 = 2 };

// Where the requests of a send queue lie, for scatter entries that write into them: locally.
struct SendQueueMemory {
  uint64_t address = 0;
  uint32_t blocks = 0;
  Key key = 0;
};

enum class PostStatus : uint8_t {
  kPosted,
  kNoSuchQueue,
  kQueueFull,
  kTooManyEntries,
  kNotSupported,  // an opcode or a flag that this NIC does not have
};

struct Posted {
  PostStatus status = PostStatus::kPosted;
  // Absolute: of the first request's first block, and of what follows the last; for receives, of
  // requests. Requests are padded with NOPs to where a request does not wrap around the queue's
  // end, so the last request is the one that ends at @end.
  uint32_t begin = 0;
  uint32_t end = 0;
};

// NOPs before a request of @blocks that would else wrap around the end of a queue of @queue_blocks.
constexpr uint32_t padding_before(uint32_t position, uint32_t blocks, uint32_t queue_blocks) {
  const uint32_t left = queue_blocks - position % queue_blocks;
  return blocks > left ? left : 0;
}

// Parts of a request in a send queue that others may write before it is enabled.
enum class Field : uint8_t {
  kOpcode,
  kKey,            // of the window; the remote key of WRITE, READ and atomics
  kNewTag,         // one byte
  kTarget,         // three bytes: a queue pair
  kIndex,          // four bytes, of WAIT and ENABLE
  kRemoteAddress,  // of WRITE, READ and atomics
  kOperand,
  kSwap,
  kWindowAddress,  // of BIND: where the window begins
  kRegionAddress,  // of BIND: where that is in the region; the same value
  kLength,         // of BIND
};

// @bytes beginning with the @offset-th of a request. The first byte is the least significant one,
// unless @big_endian.
struct FieldPlace {
  uint32_t offset = 0;
  uint32_t bytes = 0;
  bool big_endian = false;
};

enum class Event : uint8_t {
  kQueuePairFatal,        // an error that no completion tells of
  kQueuePairAccessError,  // the peer asked for what it may not have
  kCompletionQueueError,  // overrun
  kDeviceFatal,
};

struct AsyncEvent {
  Event event = Event::kDeviceFatal;
  uint32_t object = 0;  // the number of the queue
};

// A NIC with reliable connected queue pairs. The calls of a verbs provider, with its rules about
// threads: one thread at a time posts to a send queue, posts to a receive queue, polls a completion
// queue; everything else may be called by any thread. Memory that is registered stays where it is
// until it is deregistered, and belongs to the caller.
class Nic {
 public:
  virtual ~Nic() = default;

  virtual const Attributes& attributes() const = 0;

  virtual Result<ProtectionDomain> create_protection_domain() = 0;
  virtual Result<CompletionQueue> create_completion_queue(
      const CompletionQueueOptions& options) = 0;
  virtual Result<QueuePair> create_queue_pair(ProtectionDomain domain,
                                              const QueuePairOptions& options) = 0;
  // kConflict: something still uses it.
  virtual Result<void> destroy(ProtectionDomain domain) = 0;
  virtual Result<void> destroy(CompletionQueue queue) = 0;
  // kConflict: a window still serves it.
  virtual Result<void> destroy(QueuePair queue_pair) = 0;

  virtual Result<Key> register_memory(ProtectionDomain domain, std::span<std::byte> memory,
                                      Rights rights) = 0;
  // kConflict: a window is bound to it.
  virtual Result<void> deregister_memory(Key key) = 0;
  virtual Result<Key> create_window(ProtectionDomain domain, WindowType type) = 0;
  // By any key that the window has had. What it was bound to is free again.
  virtual Result<void> destroy_window(Key key) = 0;
  // Frees a window, whomever it serves and in whatever state that is.
  virtual Result<void> revoke_window(Key key) = 0;

  // Receives can be posted before. @peer: of this NIC.
  virtual Result<void> connect(QueuePair queue_pair, QueuePair peer,
                               const ConnectionOptions& options) = 0;
  // Everything posted is flushed.
  virtual Result<void> fail(QueuePair queue_pair) = 0;
  // Out of the error state: nothing is posted any more, and it has no peer. Windows stay bound.
  virtual Result<void> reset(QueuePair queue_pair) = 0;
  virtual Result<QueuePairState> state(QueuePair queue_pair) = 0;

  virtual Result<SendQueueMemory> send_queue_memory(QueuePair queue_pair) = 0;
  virtual std::optional<FieldPlace> field_place(Opcode opcode, Field field) const = 0;
  // Blocks that a request takes.
  virtual uint32_t blocks_of(Opcode opcode, uint32_t scatter_entries) const = 0;

  // All of @requests or none. In the error state they are flushed.
  virtual Posted post_send(QueuePair queue_pair, std::span<const WorkRequest> requests) = 0;
  virtual Posted post_receive(QueuePair queue_pair, std::span<const ReceiveRequest> requests) = 0;
  virtual size_t poll(CompletionQueue queue, std::span<Completion> completions) = 0;
  virtual std::optional<AsyncEvent> next_event() = 0;

  // What it has to do now, if it has no threads of its own. False: nothing.
  virtual bool progress() = 0;
};

}  // namespace memsluice::nic
