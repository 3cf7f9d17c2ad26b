// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/dsa_reset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "daemon/host/files.h"

namespace memsluice {
namespace {

constexpr const char* kOwnDriver = "memsluice";

// The drain of our queues has a bound, and ends in a reset of the device; those of other drivers
// wait for ever on some kernels. So ours go first.
Result<void> disable_all(DsaDevices& devices, const DsaConfiguration& now) {
  for (const DsaPart& queue : now.queues)
    if (queue.driver == kOwnDriver)
      if (auto disabled = devices.disable(queue.name); !disabled.ok())
        return std::move(disabled).with_context("disabling " + queue.name);
  // May have gone with its queue.
  auto left = devices.configuration(now.device.name);
  if (!left.ok()) return std::move(left).error();
  if (!left->device.enabled()) return {};
  return devices.disable(now.device.name).with_context("disabling " + now.device.name);
}

// Newer kernels enable the device again after a reset, with what they remember.
Result<void> reset_and_disable(DsaDevices& devices, const std::string& device) {
  auto reset = devices.reset(device).with_context("resetting " + device);
  if (!reset.ok()) return reset;
  auto now = devices.configuration(device);
  if (!now.ok()) return std::move(now).error();
  return now->device.enabled() ? disable_all(devices, *now) : Result<void>();
}

Result<void> configure(DsaDevices& devices, const DsaConfiguration& wanted) {
  auto now = devices.configuration(wanted.device.name);
  if (!now.ok()) return std::move(now).error();
  for (const DsaSetting& setting : settings_to_restore(wanted, *now)) {
    auto set = devices.set(setting.part, setting.attribute, setting.value);
    if (!set.ok())
      return std::move(set).with_context(
          fmt::format("setting {} of {} to {}", setting.attribute, setting.part, setting.value));
  }
  return {};
}

// One that fails does not keep the others of their users.
Result<void> enable_queues(DsaDevices& devices, const DsaConfiguration& wanted) {
  auto now = devices.configuration(wanted.device.name);
  if (!now.ok()) return std::move(now).error();
  std::optional<Error> first;
  for (const DsaPart& queue : wanted.queues) {
    auto same = std::find_if(now->queues.begin(), now->queues.end(),
                             [&](const DsaPart& other) { return other.name == queue.name; });
    const bool enabled = same != now->queues.end() && same->enabled();
    if (!queue.enabled() || enabled) continue;
    auto done = devices.enable(queue.name, queue.driver).with_context("enabling " + queue.name);
    if (!done.ok() && !first) first = std::move(done).error();
  }
  if (first) return *std::move(first);
  return {};
}

Result<void> run_steps(DsaDevices& devices, const DsaConfiguration& wanted) {
  const std::string& device = wanted.device.name;
  auto now = devices.configuration(device);
  if (!now.ok()) return std::move(now).error();
  if (now->device.enabled())
    if (auto disabled = disable_all(devices, *now); !disabled.ok()) return disabled;
  if (auto reset = reset_and_disable(devices, device); !reset.ok()) return reset;
  if (auto configured = configure(devices, wanted); !configured.ok()) return configured;
  if (!wanted.device.enabled()) return {};
  auto enabled = devices.enable(device, kDsaDeviceDriver).with_context("enabling " + device);
  return enabled.ok() ? enable_queues(devices, wanted) : enabled;
}

std::vector<std::string> enabled_queues(const DsaConfiguration& configuration) {
  std::vector<std::string> names;
  for (const DsaPart& queue : configuration.queues)
    if (queue.enabled()) names.push_back(queue.name);
  return names;
}

std::string state_of(DsaDevices& devices, const std::string& device) {
  auto now = devices.configuration(device);
  if (!now.ok()) return fmt::format("what state {} is in is not known", device);
  if (!now->device.enabled()) return fmt::format("{} is disabled now", device);
  const auto queues = enabled_queues(*now);
  if (queues.empty()) return fmt::format("{} is enabled now, none of its queues is", device);
  return fmt::format("{} is enabled now, of its queues {}", device, fmt::join(queues, ", "));
}

Error failure(DsaDevices& devices, const DsaResetPlan& plan, const Error& error) {
  const std::string& device = plan.wanted.device.name;
  std::string steps;
  for (auto what = error.context.rbegin(); what != error.context.rend(); ++what)
    steps += *what + ": ";
  std::string hint = plan.from_file ? "" : "what it had is in the log of the daemon; ";
  hint += fmt::format(
      "mend that, then accel-config disable-device {} if it is enabled, and accel-config "
      "load-config -e with that configuration",
      device);
  if (!error.hint.empty()) hint = error.hint + "; " + hint;
  // Whatever the errno, it is the reset that has failed.
  return {.code = ErrorCode::kFailed,
          .object = device,
          .message = fmt::format("{}{}: {}; {}", steps, error.object, error.message,
                                 state_of(devices, device)),
          .hint = std::move(hint),
          .os_error = error.os_error};
}

Error no_configuration(const std::string& device, const std::string& path, const Error& error) {
  return {.code = ErrorCode::kConflict,
          .object = device,
          .message = fmt::format("is not configured, and {}: {}", path, error.describe()),
          .hint =
              "configure it with accel-config and save that with accel-config save-config, or "
              "name the file that has it as [dsa] configuration in memsluiced.toml",
          .os_error = error.os_error};
}

}  // namespace

Result<DsaResetPlan> plan_dsa_reset(DsaDevices& devices, const std::string& device,
                                    const std::string& saved_path) {
  auto now = devices.configuration(device);
  if (!now.ok()) return std::move(now).error();
  DsaResetPlan plan{.wanted = *std::move(now), .saved_path = saved_path};
  if (is_configured(plan.wanted)) return plan;
  auto text = read_file(AT_FDCWD, saved_path);
  if (!text.ok())
    return no_configuration(device, saved_path, Error{.message = text.error().message});
  auto saved = parse_saved_configuration(*text, device);
  if (!saved.ok()) return no_configuration(device, saved_path, saved.error());
  plan.wanted = *std::move(saved);
  plan.from_file = true;
  return plan;
}

Result<DsaResetOutcome> carry_out_dsa_reset(DsaDevices& devices, const DsaResetPlan& plan) {
  if (auto done = run_steps(devices, plan.wanted); !done.ok())
    return failure(devices, plan, done.error());
  const std::string& device = plan.wanted.device.name;
  auto now = devices.configuration(device);
  if (!now.ok()) return failure(devices, plan, now.error());
  return DsaResetOutcome{
      .device = device, .from_file = plan.from_file, .queues = enabled_queues(*now)};
}

}  // namespace memsluice
