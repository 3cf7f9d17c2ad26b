// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/statistics.h"

#include <string>

namespace memsluice::dsa {
namespace {

// The counts that are not 0, by number.
template <size_t kCount>
Json nonzero(const std::array<uint64_t, kCount>& counts) {
  Json json = Json::object();
  for (size_t i = 0; i < kCount; i++)
    if (counts[i]) json[std::to_string(i)] = counts[i];
  return json;
}

}  // namespace

void Statistics::ended(const TraceEntry& entry) {
  const std::lock_guard lock(mutex_);
  by_opcode_[entry.descriptor.opcode]++;
  by_status_[entry.outcome.status]++;
  by_engine_[entry.engine]++;
  if (entry.descriptor.opcode != DSA_OPCODE_BATCH) bytes_ += entry.outcome.bytes_completed;
  if (!trace_entries_) return;
  if (trace_.size() == trace_entries_) trace_.pop_front();
  trace_.push_back(entry);
}

void Statistics::submitted(unsigned queue, bool accepted) {
  const std::lock_guard lock(mutex_);
  (accepted ? submitted_ : refused_)[queue]++;
}

void Statistics::interrupted(bool dropped) {
  const std::lock_guard lock(mutex_);
  (dropped ? interrupts_dropped_ : interrupts_)++;
}

void Statistics::failed_silently() {
  const std::lock_guard lock(mutex_);
  errors_without_record_++;
}

void Statistics::trace(size_t entries) {
  const std::lock_guard lock(mutex_);
  trace_.clear();
  trace_entries_ = entries;
}

Json Statistics::to_json() const {
  const std::lock_guard lock(mutex_);
  return {{"descriptors_by_opcode", nonzero(by_opcode_)},
          {"descriptors_by_status", nonzero(by_status_)},
          {"descriptors_by_engine", nonzero(by_engine_)},
          {"submitted_by_queue", nonzero(submitted_)},
          {"refused_by_queue", nonzero(refused_)},
          {"bytes", bytes_},
          {"interrupts", interrupts_},
          {"interrupts_dropped", interrupts_dropped_},
          {"errors_without_record", errors_without_record_}};
}

Json Statistics::trace_to_json() const {
  const std::lock_guard lock(mutex_);
  Json list = Json::array();
  for (const TraceEntry& entry : trace_)
    list.push_back({{"began_ns", entry.began_ns},
                    {"ended_ns", entry.ended_ns},
                    {"engine", entry.engine},
                    {"queue", entry.queue},
                    {"sequence", entry.sequence},
                    {"batch_index", entry.batch_index},
                    {"opcode", static_cast<unsigned>(entry.descriptor.opcode)},
                    {"flags", static_cast<unsigned>(entry.descriptor.flags)},
                    {"source", uint64_t{entry.descriptor.src_addr}},
                    {"destination", uint64_t{entry.descriptor.dst_addr}},
                    {"size", uint32_t{entry.descriptor.xfer_size}},
                    {"status", entry.outcome.status},
                    {"bytes_completed", entry.outcome.bytes_completed}});
  return list;
}

}  // namespace memsluice::dsa
