// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/control/dsa_configuration.h"
#include "daemon/host/dsa_devices.h"

namespace memsluice {

// What a device is to be like after its reset.
struct DsaResetPlan {
  DsaConfiguration wanted;
  std::string saved_path;
  bool from_file = false;  // the device had no configuration itself: this is the administrator's
};

struct DsaResetOutcome {
  std::string device;
  bool from_file = false;
  std::vector<std::string> queues = {};  // that are enabled
};

// What the device has now or, if that is nothing, what the file has. Changes nothing.
Result<DsaResetPlan> plan_dsa_reset(DsaDevices& devices, const std::string& device,
                                    const std::string& saved_path);

// Disables the device, resets it, and makes it what the plan says. Takes seconds. An error says
// which step failed, and what state the device is in.
Result<DsaResetOutcome> carry_out_dsa_reset(DsaDevices& devices, const DsaResetPlan& plan);

}  // namespace memsluice
