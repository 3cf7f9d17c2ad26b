// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/json.h"
#include "daemon/base/result.h"
#include "daemon/host/dsa_devices.h"

namespace memsluice {

// Whether there is anything to be put back. When idxd has forgotten it, no queue has a type.
bool is_configured(const DsaConfiguration& configuration);

// What `accel-config save-config` has written of this device, as it is after load-config -e: all
// that it names is enabled. kNotFound if the device is not in it. What it cannot know of, because a
// newer accel-config wrote it, is left out, as accel-config itself does.
Result<DsaConfiguration> parse_saved_configuration(std::string_view text,
                                                   const std::string& device);

// The same form: accel-config load-config reads it.
Json saved_form(const DsaConfiguration& configuration);

struct DsaSetting {
  std::string part;
  std::string attribute;
  std::string value;

  bool operator==(const DsaSetting&) const = default;
};

// What to set, in this order, so that a disabled device is configured as wanted. Queues that are
// too large for one another while they change are emptied first.
std::vector<DsaSetting> settings_to_restore(const DsaConfiguration& wanted,
                                            const DsaConfiguration& now);

}  // namespace memsluice
