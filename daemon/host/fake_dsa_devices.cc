// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/fake_dsa_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace memsluice {
namespace {

constexpr int kEntries = 128;

using Attributes = std::map<std::string, std::string>;

const Attributes kForgottenQueue = {{"mode", "shared"},
                                    {"threshold", "0"},
                                    {"priority", "0"},
                                    {"type", "none"},
                                    {"name", ""},
                                    {"max_batch_size", "32"},
                                    {"max_transfer_size", "2097152"},
                                    {"block_on_fault", "0"},
                                    {"ats_disable", "0"}};

void forget(DsaPart& queue) {
  for (const auto& [attribute, value] : kForgottenQueue) queue.attributes[attribute] = value;
  queue.driver.clear();
}

int number(const std::string& text) {
  return std::atoi(text.c_str());
}

}  // namespace

void FakeDsaDevices::add(const std::string& device, int queues, int engines) {
  const std::string id = dsa_device_number(device);
  DsaConfiguration& added = devices_[device];
  added.device = {.name = device, .attributes = {{"read_buffer_limit", "0"}}};
  added.groups = {
      {.name = fmt::format("group{}.0", id), .attributes = {{"traffic_class_a", "-1"}}}};
  for (int i = 0; i < engines; i++)
    added.engines.push_back(
        {.name = fmt::format("engine{}.{}", id, i), .attributes = {{"group_id", "-1"}}});
  for (int i = 0; i < queues; i++) {
    DsaPart queue{.name = fmt::format("wq{}.{}", id, i),
                  .attributes = {{"group_id", "-1"}, {"size", "0"}, {"driver_name", ""}}};
    forget(queue);
    added.queues.push_back(std::move(queue));
  }
}

void FakeDsaDevices::configure(const DsaConfiguration& wanted) {
  devices_[wanted.device.name] = wanted;
}

DsaConfiguration& FakeDsaDevices::device_of(const std::string& part) {
  const std::string id = dsa_device_number(part);
  for (auto& [name, device] : devices_)
    if (dsa_device_number(name) == id) return device;
  std::abort();
}

DsaPart& FakeDsaDevices::part(const std::string& name) {
  DsaConfiguration& device = device_of(name);
  if (device.device.name == name) return device.device;
  for (auto* parts : {&device.groups, &device.engines, &device.queues})
    for (DsaPart& known : *parts)
      if (known.name == name) return known;
  std::abort();
}

Result<void> FakeDsaDevices::enter(const std::string& step) {
  auto fault = faults_.find(step);
  if (fault == faults_.end()) return {};
  const int os_error = fault->second;
  faults_.erase(fault);
  return errno_error(os_error, "write", step);
}

Result<DsaConfiguration> FakeDsaDevices::configuration(const std::string& device) {
  auto found = devices_.find(device);
  if (found != devices_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, known] : devices_) names.push_back(name);
  return no_dsa_device(device, names);
}

bool FakeDsaDevices::size_fits(const std::string& queue, int size) {
  for (const DsaPart& other : device_of(queue).queues)
    if (other.name != queue) size += number(other.attributes.at("size"));
  return size <= kEntries;
}

Result<void> FakeDsaDevices::set(const std::string& name, const std::string& attribute,
                                 const std::string& value) {
  const std::string step = fmt::format("set {} {}", name, attribute);
  if (auto entered = enter(step); !entered.ok()) return entered;
  DsaPart& part = this->part(name);
  auto known = part.attributes.find(attribute);
  if (known == part.attributes.end()) return errno_error(ENOENT, "open", step);
  if (known->second == value) return {};
  const bool refused = part.enabled() || device_of(name).device.enabled();
  if (refused || attribute == "traffic_class_a") return errno_error(EPERM, "write", step);
  if (value.empty() || (attribute == "size" && !size_fits(name, number(value))))
    return errno_error(EINVAL, "write", step);
  if (attribute == "threshold" &&
      (part.attributes["mode"] == "dedicated" || number(value) > number(part.attributes["size"])))
    return errno_error(EINVAL, "write", step);
  if (attribute == "type") part.attributes["name"] = "";
  if (attribute == "mode") part.attributes["threshold"] = "0";
  known->second = value;
  return {};
}

Result<void> FakeDsaDevices::enable(const std::string& name, const std::string& driver) {
  const std::string step = fmt::format("enable {}", name);
  if (auto entered = enter(step); !entered.ok()) return entered;
  DsaPart& part = this->part(name);
  DsaConfiguration& device = device_of(name);
  if (std::find(drivers_.begin(), drivers_.end(), driver) == drivers_.end())
    return errno_error(ENOENT, "open", step);
  const bool queue = name.starts_with("wq");
  if (part.enabled() || (queue && !device.device.enabled()))
    return errno_error(ENODEV, "write", step);
  if (queue && (part.attributes["type"] == "none" || part.attributes["name"].empty() ||
                part.attributes["size"] == "0" || part.attributes["group_id"] == "-1"))
    return errno_error(EINVAL, "write", step);
  part.driver = driver;
  steps_.push_back(step);
  return {};
}

Result<void> FakeDsaDevices::disable(const std::string& name) {
  const std::string step = fmt::format("disable {}", name);
  if (auto entered = enter(step); !entered.ok()) return entered;
  DsaPart& part = this->part(name);
  if (!part.enabled()) return errno_error(ENOENT, "open", step);
  steps_.push_back(step);
  if (name.starts_with("wq")) {
    forget(part);
    return {};
  }
  part.driver.clear();
  DsaConfiguration& device = device_of(name);
  for (DsaPart& queue : device.queues) {
    forget(queue);
    queue.attributes["size"] = "0";
    queue.attributes["group_id"] = "-1";
  }
  for (DsaPart& engine : device.engines) engine.attributes["group_id"] = "-1";
  return {};
}

Result<void> FakeDsaDevices::reset(const std::string& device) {
  const std::string step = fmt::format("reset {}", device);
  if (auto entered = enter(step); !entered.ok()) return entered;
  steps_.push_back(step);
  if (enable_after_reset_) devices_.at(device).device.driver = kDsaDeviceDriver;
  return {};
}

DsaConfiguration sample_dsa_configuration() {
  auto queue = [](const char* name, const char* size, const char* driver) {
    return DsaPart{.name = name,
                   .attributes = {{"group_id", "0"},
                                  {"mode", "dedicated"},
                                  {"size", size},
                                  {"threshold", "0"},
                                  {"priority", "10"},
                                  {"type", "kernel"},
                                  {"name", "copies"},
                                  {"driver_name", driver},
                                  {"max_batch_size", "1024"},
                                  {"max_transfer_size", "2097152"},
                                  {"block_on_fault", "0"},
                                  {"ats_disable", "0"}},
                   .driver = driver};
  };
  FakeDsaDevices devices;
  devices.add("dsa0", 3, 2);
  DsaConfiguration sample = *devices.configuration("dsa0");
  sample.device.driver = kDsaDeviceDriver;
  for (DsaPart& engine : sample.engines) engine.attributes["group_id"] = "0";
  sample.queues[0] = queue("wq0.0", "64", "memsluice");
  sample.queues[1] = queue("wq0.1", "32", "dmaengine");
  return sample;
}

}  // namespace memsluice
