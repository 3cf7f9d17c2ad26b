// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/traffic/traffic_control.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace memsluice::traffic {
namespace {

namespace fs = std::filesystem;

// An idle guest looks once a second, a loaded host may need longer for it.
constexpr auto kApplyTimeout = std::chrono::seconds(20);

std::string first_word(const fs::path& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

Result<std::string> find_ivshmem() {
  const fs::path devices = "/sys/bus/pci/devices";
  std::error_code ignored;  // no PCI is like no device
  for (const auto& device : fs::directory_iterator(devices, ignored)) {
    if (first_word(device.path() / "vendor") == "0x1af4" &&
        first_word(device.path() / "device") == "0x1110") {
      return (device.path() / "resource2").string();
    }
  }
  return Error{ErrorCode::kNotFound,
               devices,
               "no ivshmem device (1af4:1110)",
               "name the plugin's file with --file",
               0,
               {}};
}

}  // namespace

Result<OpenTrafficFile> OpenTrafficFile::open(const std::string& path) {
  const auto found = path.empty() ? find_ivshmem() : Result<std::string>(path);
  if (!found.ok()) return found.error();
  auto mapping = Mapping::open(*found);
  if (!mapping.ok()) return mapping.error();
  const auto file = TrafficFile::attach(mapping->bytes());
  if (!file) {
    return Error{ErrorCode::kFailed, *found, "no traffic plugin has laid out this file", {}, 0, {}};
  }
  return OpenTrafficFile{std::move(mapping).value(), *file};
}

Result<void> request(const TrafficFile& file) {
  Control& control = file.control();
  const uint64_t wanted = control.requested.fetch_add(1) + 1;
  const auto deadline = std::chrono::steady_clock::now() + kApplyTimeout;
  while (control.applied.load() < wanted) {
    if (std::chrono::steady_clock::now() > deadline) {
      return Error{ErrorCode::kUnavailable,
                   "traffic plugin",
                   "does not answer",
                   "is the guest running?",
                   0,
                   {}};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

Result<void> set_counting(const TrafficFile& file, bool on) {
  file.control().counting_requested = on ? 1 : 0;
  return request(file);
}

Result<void> reset_counters(const TrafficFile& file) {
  file.control().resets_requested.fetch_add(1);
  return request(file);
}

Traffic& Traffic::operator+=(const BlockCounters& counters) {
  read_bytes += counters.read_bytes.load(std::memory_order_relaxed);
  write_bytes += counters.write_bytes.load(std::memory_order_relaxed);
  return *this;
}

Traffic traffic_of_blocks(const TrafficFile& file, std::span<const uint32_t> blocks) {
  Traffic traffic;
  for (const uint32_t block : blocks) {
    if (block >= file.layout().blocks) continue;
    for (uint32_t slot = 0; slot <= file.other_agents_slot(); ++slot) {
      traffic += file.counters(slot, block);
    }
  }
  return traffic;
}

}  // namespace memsluice::traffic
