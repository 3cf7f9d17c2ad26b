// SPDX-License-Identifier: GPL-2.0
#include "tests/unit/kernel/plan_check.h"

#include <algorithm>
#include <cstddef>

namespace memsluice::test {
namespace {

Planned& planned_of(void* context) {
  return *static_cast<Planned*>(context);
}

void alone(void* context, unsigned int queue, const memsluice_plan_piece* piece) {
  Planned& planned = planned_of(context);
  planned.calls++;
  planned.queues[queue].alone.push_back(*piece);
  planned.queues[queue].bytes += piece->bytes;
}

void grouped(void* context, unsigned int queue, const memsluice_plan_piece* piece) {
  Planned& planned = planned_of(context);
  planned.calls++;
  planned.queues[queue].open.push_back(*piece);
  planned.queues[queue].bytes += piece->bytes;
}

void close_group(void* context, unsigned int queue, uint32_t count) {
  Planned& planned = planned_of(context);
  planned.calls++;
  PlannedQueue& into = planned.queues[queue];
  if (count != into.open.size()) planned.wrong = "a group is closed with another count";
  into.groups.push_back(std::move(into.open));
  into.open.clear();
}

constexpr memsluice_plan_sink kSink = {.alone = alone, .grouped = grouped, .close = close_group};

// Parts of one folio, in order, have to be the whole of it.
bool are_whole(std::vector<memsluice_plan_piece>& pieces, const std::vector<uint32_t>& folios) {
  std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) {
    return a.folio != b.folio ? a.folio < b.folio : a.offset_bytes < b.offset_bytes;
  });
  size_t next = 0;
  for (uint32_t folio = 0; folio < folios.size(); folio++) {
    uint64_t covered = 0;
    for (; next < pieces.size() && pieces[next].folio == folio; next++) {
      if (pieces[next].offset_bytes != covered) return false;
      covered += pieces[next].bytes;
    }
    if (covered != folios[folio]) return false;
  }
  return next == pieces.size();
}

std::string wrong_with_queue(const PlannedQueue& queue, const memsluice_plan_queue& limits,
                             uint32_t alone_bytes) {
  if (!queue.open.empty()) return "a group is left open";
  for (const auto& piece : queue.alone) {
    if (piece.bytes == 0 || piece.bytes > limits.max_transfer_bytes) return "a transfer's size";
    if (piece.bytes < alone_bytes && limits.max_batch >= 2) return "a small piece is alone";
  }
  for (size_t i = 0; i < queue.groups.size(); i++) {
    const auto& group = queue.groups[i];
    if (group.empty() || group.size() > limits.max_batch) return "a batch's size";
    if (i + 1 < queue.groups.size() && group.size() != limits.max_batch)
      return "a group that is not the last has room";
    for (const auto& piece : group)
      if (piece.bytes == 0 || piece.bytes >= alone_bytes || piece.bytes > limits.max_transfer_bytes)
        return "a grouped transfer's size";
  }
  return {};
}

uint64_t most_calls(const std::vector<memsluice_plan_queue>& queues,
                    const std::vector<uint32_t>& folios) {
  uint32_t smallest_transfer = UINT32_MAX;
  for (const auto& queue : queues)
    smallest_transfer = std::min(smallest_transfer, queue.max_transfer_bytes);
  uint64_t pieces = 0;
  for (const uint32_t bytes : folios)
    pieces += std::min<uint64_t>(bytes / kPage, queues.size()) + bytes / smallest_transfer;
  // Each piece is one call, and each is in one group at most.
  return 2 * pieces;
}

}  // namespace

Planned plan(const std::vector<memsluice_plan_queue>& queues, const std::vector<uint32_t>& folios,
             uint32_t alone_bytes) {
  Planned planned;
  planned.queues.resize(queues.size());
  memsluice_plan plan = {};
  plan.queues = queues.data();
  plan.queue_count = static_cast<unsigned>(queues.size());
  plan.alone_bytes = alone_bytes;
  plan.sink = &kSink;
  plan.context = &planned;
  memsluice_plan_begin(&plan);
  for (const uint32_t bytes : folios) {
    memsluice_plan_add(&plan, bytes);
    const auto [least, most] =
        std::minmax_element(planned.queues.begin(), planned.queues.end(),
                            [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    planned.widest_gap_bytes = std::max(planned.widest_gap_bytes, most->bytes - least->bytes);
  }
  memsluice_plan_end(&plan);
  return planned;
}

std::string what_is_wrong(const Planned& planned, const std::vector<memsluice_plan_queue>& queues,
                          const std::vector<uint32_t>& folios, uint32_t alone_bytes) {
  if (!planned.wrong.empty()) return planned.wrong;
  std::vector<memsluice_plan_piece> pieces;
  for (size_t i = 0; i < queues.size(); i++) {
    const PlannedQueue& queue = planned.queues[i];
    if (std::string wrong = wrong_with_queue(queue, queues[i], alone_bytes); !wrong.empty())
      return "queue " + std::to_string(i) + ": " + wrong;
    pieces.insert(pieces.end(), queue.alone.begin(), queue.alone.end());
    for (const auto& group : queue.groups) pieces.insert(pieces.end(), group.begin(), group.end());
  }
  if (!are_whole(pieces, folios)) return "a byte is not copied exactly once";
  if (planned.widest_gap_bytes > kPage) return "queues are more than a page apart";
  if (planned.calls > most_calls(queues, folios)) return "too many calls";
  return {};
}

}  // namespace memsluice::test
