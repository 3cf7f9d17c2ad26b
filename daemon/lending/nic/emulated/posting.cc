// SPDX-License-Identifier: GPL-2.0
// What threads that post and poll do by themselves, without a lock.
#include <algorithm>

#include "daemon/lending/nic/emulated/emulated_nic.h"

namespace memsluice::nic {
namespace {

uint32_t blocks_of_request(const WorkRequest& request) {
  return blocks_for(request.opcode, static_cast<uint32_t>(request.entries.size()));
}

void put(SendQueue& queue, uint32_t position, const WorkRequest& request) {
  RequestBlock block = encode(request);
  block.index = static_cast<uint16_t>(position);
  queue.side[position & queue.mask] = {request.id, block.blocks};
  RequestBlock* at = &queue.blocks[position & queue.mask];
  *at = block;
  if (request.entries.size() > 1)
    std::ranges::copy(request.entries.subspan(1), reinterpret_cast<ScatterEntry*>(at + 1));
}

PostStatus check(const QueuePairOptions& options, std::span<const WorkRequest> requests) {
  for (const WorkRequest& request : requests) {
    if (!is_opcode(request.opcode)) return PostStatus::kNotSupported;
    if (request.entries.size() > options.max_scatter_entries) return PostStatus::kTooManyEntries;
  }
  return PostStatus::kPosted;
}

}  // namespace

Posted EmulatedNic::post_send(QueuePair queue_pair, std::span<const WorkRequest> requests) {
  QueuePairObject* qp = object(queue_pair);
  if (!qp) return {PostStatus::kNoSuchQueue};
  if (PostStatus status = check(qp->options, requests); status != PostStatus::kPosted)
    return {status};
  SendQueue& queue = qp->send;
  const uint32_t begin = queue.posted.load(std::memory_order_relaxed);
  uint32_t end = begin;
  for (const WorkRequest& request : requests) {
    const uint32_t blocks = blocks_of_request(request);
    end += padding_before(end, blocks, queue.mask + 1) + blocks;
  }
  if (end - queue.released.load(std::memory_order_acquire) > queue.mask + 1)
    return {PostStatus::kQueueFull};
  uint32_t position = begin;
  for (const WorkRequest& request : requests) {
    const uint32_t blocks = blocks_of_request(request);
    for (uint32_t pad = padding_before(position, blocks, queue.mask + 1); pad > 0; pad--)
      put(queue, position++, {});
    put(queue, position, request);
    position += blocks;
  }
  queue.posted.store(end, std::memory_order_release);
  if (!queue.managed || qp->state.load(std::memory_order_relaxed) == QueuePairState::kError) {
    const auto number = static_cast<uint32_t>(queue_pair);
    doorbells_[number / 64].fetch_or(uint64_t{1} << number % 64);
    if (asleep_.load()) wake_engine();
  }
  return {PostStatus::kPosted, begin, end};
}

Posted EmulatedNic::post_receive(QueuePair queue_pair, std::span<const ReceiveRequest> requests) {
  QueuePairObject* qp = object(queue_pair);
  if (!qp) return {PostStatus::kNoSuchQueue};
  ReceiveQueue& queue = qp->receive;
  for (const ReceiveRequest& request : requests)
    if (request.entries.size() > queue.stride) return {PostStatus::kTooManyEntries};
  const uint32_t begin = queue.posted.load(std::memory_order_relaxed);
  const uint32_t taken = queue.taken.load(std::memory_order_acquire);
  if (begin - taken + requests.size() > queue.mask + 1) return {PostStatus::kQueueFull};
  uint32_t position = begin;
  for (const ReceiveRequest& request : requests) {
    const uint32_t index = position++ & queue.mask;
    queue.ids[index] = request.id;
    queue.entry_counts[index] = static_cast<uint32_t>(request.entries.size());
    std::ranges::copy(request.entries, queue.entries.begin() + size_t{index} * queue.stride);
  }
  queue.posted.store(position);
  if (qp->state.load() == QueuePairState::kError) {
    const auto number = static_cast<uint32_t>(queue_pair);
    doorbells_[number / 64].fetch_or(uint64_t{1} << number % 64);
    if (asleep_.load()) wake_engine();
  }
  return {PostStatus::kPosted, begin, position};
}

size_t EmulatedNic::poll(CompletionQueue queue, std::span<Completion> completions) {
  CompletionRing* from = ring(queue);
  if (!from || from->ignores_overrun) return 0;
  const uint32_t begin = from->consumed.load(std::memory_order_relaxed);
  const uint32_t there = from->produced.load(std::memory_order_acquire) - begin;
  const size_t count = std::min<size_t>(there, completions.size());
  for (size_t i = 0; i < count; i++) completions[i] = from->entries[(begin + i) & from->mask];
  if (count > 0)
    from->consumed.store(begin + static_cast<uint32_t>(count), std::memory_order_release);
  return count;
}

}  // namespace memsluice::nic
