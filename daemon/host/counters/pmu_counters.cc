// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/counters/pmu_counters.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <set>

#include "daemon/base/units.h"
#include "daemon/host/counters/monotonic.h"
#include "daemon/host/files.h"

namespace memsluice {
namespace {

std::optional<int> topology_id(const Paths& paths, int cpu, const char* file) {
  auto text = read_file(AT_FDCWD, fmt::format("{}/cpu{}/topology/{}", paths.cpus, cpu, file));
  if (!text.ok()) return std::nullopt;
  auto id = parse_number(trimmed(*text), 0, 1 << 16);
  return id.ok() ? std::optional(static_cast<int>(*id)) : std::nullopt;
}

std::optional<int> socket_of(const Paths& paths, int cpu) {
  return topology_id(paths, cpu, "physical_package_id");
}

struct NamedCpu {
  std::string name;  // of the channel
  int cpu;
};

// One for each CPU that can be named: the PMU's name and where it is. Only where a socket has
// several dies with a PMU of the same name is the die named, too.
std::vector<NamedCpu> channels_of(const MemoryPmu& pmu, const Paths& paths) {
  std::map<int, std::vector<int>> cpus_of_socket;
  for (const int cpu : pmu.cpus)
    if (auto socket = socket_of(paths, cpu)) cpus_of_socket[*socket].push_back(cpu);
  std::vector<NamedCpu> named;
  for (const auto& [socket, cpus] : cpus_of_socket) {
    for (const int cpu : cpus) {
      const auto die = topology_id(paths, cpu, "die_id");
      const std::string where = cpus.size() == 1 || !die
                                    ? fmt::format("socket{}", socket)
                                    : fmt::format("socket{}.die{}", socket, *die);
      named.push_back({fmt::format("{}/{}", where, pmu.name), cpu});
    }
  }
  return named;
}

bool same_place(const MemoryPmu& left, const MemoryPmu& right) {
  return left.type == right.type && left.reads == right.reads && left.writes == right.writes;
}

}  // namespace

std::map<int, int> nodes_of_sockets(const Paths& paths) {
  auto with_memory = read_file(AT_FDCWD, paths.nodes + "/has_memory");
  if (!with_memory.ok()) return {};
  std::map<int, std::set<int>> nodes_of_socket;
  for (const int node : parse_id_list(*with_memory)) {
    auto cpus = read_file(AT_FDCWD, fmt::format("{}/node{}/cpulist", paths.nodes, node));
    if (!cpus.ok() || trimmed(*cpus).empty()) return {};
    for (const int cpu : parse_id_list(*cpus))
      if (auto socket = socket_of(paths, cpu)) nodes_of_socket[*socket].insert(node);
  }
  std::map<int, int> known;
  for (const auto& [socket, nodes] : nodes_of_socket)
    if (nodes.size() == 1) known[socket] = *nodes.begin();
  return known;
}

PmuCounters::PmuCounters(CounterSettings settings, Paths paths, OpenPerfEvent open)
    : settings_(std::move(settings)), paths_(std::move(paths)), open_(std::move(open)) {}

void PmuCounters::look_at_pmus() {
  std::string fingerprint = memory_pmus_fingerprint(paths_.event_sources);
  if (fingerprint_ == fingerprint) return;
  fingerprint_ = std::move(fingerprint);
  MemoryPmus found = read_memory_pmus(paths_.event_sources);
  pmu_notices_ = std::move(found.notices);
  std::map<std::string, Box> earlier = std::exchange(boxes_, {});
  for (const MemoryPmu& pmu : found.pmus) {
    for (auto& [name, cpu] : channels_of(pmu, paths_)) {
      auto known = earlier.find(name);
      Box box = known == earlier.end() ? Box{} : std::move(known->second);
      if (box.cpu != cpu || !same_place(box.pmu, pmu)) {
        // With what it has counted until now.
        count(box);
        box.counters.clear();
      }
      box.pmu = pmu;
      box.cpu = cpu;
      box.counts.name = name;
      boxes_.insert_or_assign(name, std::move(box));
    }
  }
}

void PmuCounters::open(Box& box) {
  box.error.reset();
  for (const bool writes : {false, true}) {
    for (const PmuEvent& event : writes ? box.pmu.writes : box.pmu.reads) {
      auto perf = open_({.type = box.pmu.type, .config = event.config, .cpu = box.cpu});
      if (!perf.ok()) {
        box.error = std::move(perf).error();
        box.counters.clear();
        return;
      }
      box.counters.push_back(
          {.perf = *std::move(perf), .bytes_per_count = event.bytes_per_count, .writes = writes});
    }
  }
}

// All of its counters or none, so that what is read and what is written are of the same time.
bool PmuCounters::count(Box& box) {
  if (box.counters.empty()) return false;
  std::vector<CounterValue> values;
  double read_bytes = 0;
  double write_bytes = 0;
  bool all_ran = true;
  for (Counter& counter : box.counters) {
    auto value = counter.perf->read();
    if (!value.ok()) {
      box.error = std::move(value).error();
      box.counters.clear();
      return false;
    }
    values.push_back(*value);
    const auto counted = counted_between(counter.last, *value);
    all_ran = all_ran && counted;
    (counter.writes ? write_bytes : read_bytes) += counted.value_or(0) * counter.bytes_per_count;
  }
  // What did not run is extrapolated later, from a longer time.
  if (!all_ran) return false;
  const CounterValue& first = values.front();
  box.counts.enabled_ns += first.enabled_ns - box.counters.front().last.enabled_ns;
  box.counts.running_ns += first.running_ns - box.counters.front().last.running_ns;
  box.counts.read_bytes += static_cast<uint64_t>(std::llround(read_bytes));
  box.counts.write_bytes += static_cast<uint64_t>(std::llround(write_bytes));
  for (size_t i = 0; i < values.size(); i++) box.counters[i].last = values[i];
  return true;
}

std::vector<std::string> PmuCounters::notices() const {
  std::vector<std::string> notices = pmu_notices_;
  std::map<std::string, std::vector<std::string>> names_of_error;
  for (const auto& [name, box] : boxes_)
    if (box.error) names_of_error[box.error->describe()].push_back(name);
  for (const auto& [error, names] : names_of_error)
    notices.push_back(names.size() == 1 ? fmt::format("{}: {}", names.front(), error)
                                        : fmt::format("{} and {} more: {}", names.front(),
                                                      names.size() - 1, error));
  return notices;
}

Error PmuCounters::why_nothing() const {
  for (const auto& [name, box] : boxes_)
    if (box.error) return box.error->with_context(name);
  if (!boxes_.empty())
    return Error{.code = ErrorCode::kUnavailable,
                 .object = boxes_.begin()->first,
                 .message = "none of its counters has run",
                 .hint = "are all of them taken by somebody else (perf, pcm)?"};
  Error error{.code = ErrorCode::kUnavailable,
              .object = paths_.event_sources,
              .message = "there is no usable PMU of a memory controller (uncore_imc, amd_umc)",
              .hint =
                  "load intel_uncore, or amd_uncore of Linux 6.7 or newer; a VM has none: there "
                  "[counters] source may name a file or a socket"};
  if (!pmu_notices_.empty()) error.message += ": " + pmu_notices_.front();
  return error;
}

Result<CountersReading> PmuCounters::read() {
  look_at_pmus();
  const std::map<int, int> node_of_socket = nodes_of_sockets(paths_);
  CountersReading reading;
  for (auto& [name, box] : boxes_) {
    if (box.counters.empty()) open(box);
    if (!count(box)) continue;
    ChannelCounts counts = box.counts;
    if (auto socket = socket_of(paths_, box.cpu))
      if (auto node = node_of_socket.find(*socket); node != node_of_socket.end())
        counts.node = node->second;
    reading.channels.push_back(std::move(counts));
  }
  reading.time = monotonic_now();
  if (reading.channels.empty()) return why_nothing();
  reading.notices = notices();
  for (std::string& notice : apply_configured_nodes(settings_, reading.channels))
    reading.notices.push_back(std::move(notice));
  return reading;
}

}  // namespace memsluice
