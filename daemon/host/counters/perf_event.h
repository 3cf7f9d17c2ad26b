// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "daemon/base/result.h"
#include "daemon/host/counters/pmu_description.h"

namespace memsluice {

// A counter since it was opened. It counts for running_ns of enabled_ns: the kernel shares the
// hardware's counters among those who want them.
struct CounterValue {
  uint64_t count = 0;
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;
};

// What would have been counted between two readings if the counter had run all the time; modulo
// 2^64. Nothing if it did not run at all, or seems to have begun anew.
std::optional<double> counted_between(const CounterValue& earlier, const CounterValue& now);

class PerfCounter {
 public:
  virtual ~PerfCounter() = default;
  virtual Result<CounterValue> read() = 0;
};

struct PerfEvent {
  uint32_t type = 0;
  PmuConfig config = {};
  int cpu = 0;
};

// perf_event_open(2) for all that happens on a CPU, or what stands in for it in tests.
using OpenPerfEvent = std::function<Result<std::unique_ptr<PerfCounter>>(const PerfEvent& event)>;

Result<std::unique_ptr<PerfCounter>> open_perf_event(const PerfEvent& event);

}  // namespace memsluice
