// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>

#include "daemon/base/json.h"
#include "tools/memsluice-dsa/descriptor.h"
#include "tools/memsluice-dsa/operations.h"
#include "tools/memsluice-dsa/shape.h"

namespace memsluice::dsa {

// A descriptor that has ended, as the trace keeps it.
struct TraceEntry {
  uint64_t began_ns = 0;  // of the host's monotonic clock
  uint64_t ended_ns = 0;
  unsigned engine = 0;
  unsigned queue = 0;
  uint64_t sequence = 0;  // among what its queue was given; a batch and its descriptors share one
  int batch_index = -1;   // -1: not of a batch
  Descriptor descriptor = {};
  Outcome outcome = {};
};

// What the device has done. Any thread may use it.
class Statistics {
 public:
  static constexpr size_t kTraceMax = 1'000'000;

  void ended(const TraceEntry& entry);
  void submitted(unsigned queue, bool accepted);
  void interrupted(bool dropped);
  void failed_silently();

  // Keeps the last @entries descriptors from now on; 0: none.
  void trace(size_t entries);
  Json to_json() const;
  Json trace_to_json() const;

 private:
  mutable std::mutex mutex_;
  std::array<uint64_t, 256> by_opcode_ = {};
  std::array<uint64_t, 256> by_status_ = {};
  std::array<uint64_t, Shape::kQueuesMax> submitted_ = {};
  std::array<uint64_t, Shape::kQueuesMax> refused_ = {};
  std::array<uint64_t, Shape::kEnginesMax> by_engine_ = {};
  uint64_t bytes_ = 0;
  uint64_t interrupts_ = 0;
  uint64_t interrupts_dropped_ = 0;
  uint64_t errors_without_record_ = 0;
  size_t trace_entries_ = 0;
  std::deque<TraceEntry> trace_;
};

}  // namespace memsluice::dsa
