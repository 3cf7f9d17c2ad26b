// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/dsa_replay.h"

#include <algorithm>

#include "daemon/host/dsa_devices.h"

namespace memsluice {
namespace {

constexpr int kLooksLost = 2;
constexpr Milliseconds kReplayPauseMin{60 * 1000};
constexpr Milliseconds kReplayPauseMax{60 * 60 * 1000};

// A queue that rests or was drained is the engine's own affair, and comes back by a test.
bool is_lost(const memsluice_engine_queue& queue) {
  return queue.state == MEMSLUICE_QUEUE_STUCK;
}

}  // namespace

void DsaReplay::look(const std::string& saved_path) {
  // What somebody has asked for takes queues away, too.
  if (engines_.busy()) return;
  [[maybe_unused]] auto begun = engines_.list([this, alive = std::weak_ptr(alive_), saved_path](
                                                  const Result<std::vector<EngineInfo>>& engines) {
    if (alive.lock() && engines.ok()) judge(*engines, saved_path);
  });
}

void DsaReplay::judge(const std::vector<EngineInfo>& engines, const std::string& saved_path) {
  const auto engine = std::find_if(engines.begin(), engines.end(),
                                   [](const EngineInfo& one) { return one.name() == "dsa"; });
  // Without the engine, nothing is said of its devices.
  if (engine == engines.end()) return devices_.clear();
  for (auto& [name, device] : devices_) device.up = false;
  for (const memsluice_engine_queue& queue : engine->queues)
    if (!is_lost(queue)) devices_["dsa" + dsa_device_number(engine_name(queue.name))].up = true;
  for (auto& [name, device] : devices_) {
    if (device.up)
      device = Device{.up = true};
    else if (++device.looks_lost >= kLooksLost && clock_.monotonic() >= device.next)
      bring_back(name, device, saved_path);
  }
}

void DsaReplay::bring_back(const std::string& name, Device& device, const std::string& saved_path) {
  device.pause = std::clamp(device.pause * 2, kReplayPauseMin, kReplayPauseMax);
  device.next = clock_.monotonic() + device.pause;
  log_.warning(
      "{}: its queues are gone or stuck, though nobody here has reset it: bringing it back", name);
  auto begun = engines_.reset(
      name, saved_path,
      [this, alive = std::weak_ptr(alive_), name](const Result<DsaResetOutcome>& outcome) {
        if (alive.lock() && !outcome.ok())
          log_.error("{} is not brought back: {}", name, outcome.error().describe());
      });
  if (!begun.ok()) log_.error("{} is not brought back: {}", name, begun.error().describe());
}

}  // namespace memsluice
