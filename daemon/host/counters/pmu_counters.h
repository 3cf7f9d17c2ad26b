// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/host/counters/channel_counters.h"
#include "daemon/host/counters/perf_event.h"

namespace memsluice {

// The NUMA node whose memory is that of a socket, by socket. A socket is left out unless there is
// no other answer: it has one node, and no node of the host is without CPUs, because such a one may
// be a part of any socket's memory.
std::map<int, int> nodes_of_sockets(const Paths& paths);

// The PMUs of the memory controllers, read on the CPUs that they name. When the CPU that a
// controller is read on goes offline, the kernel names another, and it is opened there; what was
// counted before is kept.
class PmuCounters : public ChannelCounters {
 public:
  PmuCounters(CounterSettings settings, Paths paths, OpenPerfEvent open = open_perf_event);

  Result<CountersReading> read() override;

 private:
  struct Counter {
    std::unique_ptr<PerfCounter> perf;
    CounterValue last = {};
    double bytes_per_count = 0;
    bool writes = false;
  };
  // One channel.
  struct Box {
    MemoryPmu pmu;
    int cpu = 0;
    std::vector<Counter> counters = {};  // none: it is not open
    std::optional<Error> error = {};     // why not
    ChannelCounts counts = {};
  };

  void look_at_pmus();
  void open(Box& box);
  static bool count(Box& box);
  std::vector<std::string> notices() const;
  Error why_nothing() const;

  const CounterSettings settings_;
  const Paths paths_;
  const OpenPerfEvent open_;
  std::optional<std::string> fingerprint_;
  std::vector<std::string> pmu_notices_;
  std::map<std::string, Box> boxes_;  // by the channel's name
};

}  // namespace memsluice
