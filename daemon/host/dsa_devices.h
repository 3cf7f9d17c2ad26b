// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"

namespace memsluice {

// A device of idxd, or a group, engine or queue of one.
struct DsaPart {
  std::string name;                                    // dsa0, group0.0, engine0.3, wq0.0
  std::map<std::string, std::string> attributes = {};  // those that can be set
  std::string driver = {};  // that it is bound to; empty: it is disabled, or no such thing can be

  bool enabled() const { return !driver.empty(); }
  bool operator==(const DsaPart&) const = default;
};

struct DsaConfiguration {
  DsaPart device;
  std::vector<DsaPart> groups = {};
  std::vector<DsaPart> engines = {};
  std::vector<DsaPart> queues = {};

  bool operator==(const DsaConfiguration&) const = default;
};

inline constexpr const char* kDsaDeviceDriver = "idxd";

// What idxd lets be set of such a part, in the order in which it has to be: a type clears the name,
// a mode the threshold, which is bounded by the size. Nothing of a name that is no part's.
std::span<const char* const> dsa_attributes(std::string_view part);

// "0" of dsa0, iax0 and wq0.1; empty if it is the name of neither.
std::string dsa_device_number(std::string_view part);

// The devices that idxd drives, as Documentation/ABI/stable/sysfs-driver-dma-idxd has them.
// Enabling and disabling wait for the drivers of the queues, and may take seconds.
class DsaDevices {
 public:
  virtual ~DsaDevices() = default;
  virtual Result<DsaConfiguration> configuration(const std::string& device) = 0;
  // Does nothing where the value is already there: some can be read only.
  virtual Result<void> set(const std::string& part, const std::string& attribute,
                           const std::string& value) = 0;
  virtual Result<void> enable(const std::string& part, const std::string& driver) = 0;
  virtual Result<void> disable(const std::string& part) = 0;
  // The whole PCI function.
  virtual Result<void> reset(const std::string& device) = 0;
};

Error no_dsa_device(const std::string& device, const std::vector<std::string>& known);

// `bus` is /sys/bus/dsa.
std::unique_ptr<DsaDevices> open_dsa_devices(std::string bus);

}  // namespace memsluice
