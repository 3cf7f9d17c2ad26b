// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/host/dsa_devices.h"

namespace memsluice {

// Devices in memory, for tests: they forget what idxd forgets, refuse what it refuses, and fail on
// order.
class FakeDsaDevices : public DsaDevices {
 public:
  // Disabled and not configured, as after boot.
  void add(const std::string& device, int queues, int engines);
  // Sets and enables all of it, as accel-config does.
  void configure(const DsaConfiguration& wanted);
  // The next such step fails: "set wq0.0 size", "enable dsa0", "disable wq0.0", "reset dsa0".
  void fail_next(const std::string& step, int os_error) { faults_[step] = os_error; }
  // As newer kernels do, a reset enables the device again.
  void enable_after_reset() { enable_after_reset_ = true; }
  void add_driver(const std::string& name) { drivers_.push_back(name); }

  // What has been done: enabled, disabled, reset.
  const std::vector<std::string>& steps() const { return steps_; }
  void forget_steps() { steps_.clear(); }
  DsaPart& part(const std::string& name);

  Result<DsaConfiguration> configuration(const std::string& device) override;
  Result<void> set(const std::string& part, const std::string& attribute,
                   const std::string& value) override;
  Result<void> enable(const std::string& part, const std::string& driver) override;
  Result<void> disable(const std::string& part) override;
  Result<void> reset(const std::string& device) override;

 private:
  Result<void> enter(const std::string& step);
  DsaConfiguration& device_of(const std::string& part);
  bool size_fits(const std::string& queue, int size);

  std::map<std::string, DsaConfiguration> devices_;
  std::vector<std::string> drivers_ = {"idxd", "user", "dmaengine", "memsluice"};
  std::map<std::string, int> faults_;
  std::vector<std::string> steps_;
  bool enable_after_reset_ = false;
};

// dsa0 as an administrator has set it up: two engines in one group, of three queues one of
// memsluice's and one of dmaengine's, both enabled.
DsaConfiguration sample_dsa_configuration();

}  // namespace memsluice
