// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/host/paths.h"

namespace memsluice {

using Nanoseconds = std::chrono::nanoseconds;

// What one memory channel has served since its counters were opened. It never goes backwards as
// long as the channel is there.
struct ChannelCounts {
  std::string name;              // "socket0/uncore_imc_3": the same at every reading
  std::optional<int> node = {};  // the NUMA node that the channel is, or is a part of, if known
  uint64_t read_bytes = 0;
  uint64_t write_bytes = 0;
  // Of this time both counts are true for running_ns: where counters are shared, the bytes are
  // extrapolated from that part.
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;

  bool operator==(const ChannelCounts&) const = default;
};

struct CountersReading {
  Nanoseconds time{0};                       // CLOCK_MONOTONIC, when the counts were what they are
  std::vector<ChannelCounts> channels = {};  // in order of their names
  // What stands against more: counters that are missing or cannot be opened, channels of which
  // nobody knows the node. Sentences for people; the same at the next reading unless it changed.
  std::vector<std::string> notices = {};
};

// Where the counts come from. A reading may sleep for milliseconds; one at a time.
class ChannelCounters {
 public:
  virtual ~ChannelCounters() = default;

  // An error, or a channel that is left out, means that nothing is known, never that nothing was
  // moved. Whoever comes back later may find more: each call looks again at what there is.
  virtual Result<CountersReading> read() = 0;
};

struct CounterSettings {
  // "pmu": the uncore counters of Intel's and AMD's memory controllers. An absolute path: a file or
  // a unix socket with text of another program's (see docs/counters.md). "none": nothing is read.
  std::string source = "pmu";
  // The NUMA node of a channel, by its name; this goes before what the source says.
  std::map<std::string, int> nodes = {};

  bool operator==(const CounterSettings&) const = default;
};

// Opens nothing yet: the first reading does. Null for "none".
std::unique_ptr<ChannelCounters> make_channel_counters(const CounterSettings& settings,
                                                       const Paths& paths);

// Those of the settings before what is known already, and what is to be said of them.
std::vector<std::string> apply_configured_nodes(const CounterSettings& settings,
                                                std::vector<ChannelCounts>& channels);

}  // namespace memsluice
