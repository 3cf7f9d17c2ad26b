// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"

namespace memsluice {

// What a PMU of the kernel says about itself below /sys/bus/event_source/devices; the rules are
// those of the kernel's Documentation/ABI/testing/sysfs-bus-event_source-devices-{format,events}.

// Where the value of one term goes: "config1:0-7,32-35". Its lowest bit goes to the lowest bit.
struct PmuFormat {
  size_t word = 0;  // 0: config, 1: config1, 2: config2
  uint64_t bits = 0;

  bool operator==(const PmuFormat&) const = default;
};
Result<PmuFormat> parse_pmu_format(std::string_view text);

using PmuFormats = std::map<std::string, PmuFormat, std::less<>>;
using PmuConfig = std::array<uint64_t, 3>;  // config, config1, config2 of perf_event_attr

// Of an event as its file has it: "event=0x05,umask=0xcf". A term without a value is 1.
Result<PmuConfig> encode_pmu_event(const PmuFormats& formats, std::string_view event);

// From the files EVENT.scale and EVENT.unit: "6.103515625e-5" of "MiB" are 64 bytes.
Result<double> bytes_per_count(std::string_view scale, std::string_view unit);

struct PmuEvent {
  PmuConfig config = {};
  double bytes_per_count = 0;

  bool operator==(const PmuEvent&) const = default;
};

// A PMU of memory controllers: one box for each of its CPUs.
struct MemoryPmu {
  std::string name;
  uint32_t type = 0;
  std::vector<int> cpus = {};        // on which its events are to be opened
  std::vector<PmuEvent> reads = {};  // what is read is the sum of these
  std::vector<PmuEvent> writes = {};

  bool operator==(const MemoryPmu&) const = default;
};

struct MemoryPmus {
  std::vector<MemoryPmu> pmus = {};
  std::vector<std::string> notices = {};  // PMUs that cannot be used, and why
};

// Those that count: uncore_imc*, which has a PMU for each channel, or where that cannot be used
// uncore_imc_free_running*, which has one for each controller; and amd_umc_*.
MemoryPmus read_memory_pmus(const std::string& event_sources);

// Differs from what it was when another PMU or another CPU is to be opened.
std::string memory_pmus_fingerprint(const std::string& event_sources);

}  // namespace memsluice
