// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "tools/memsluice/doctor/facts.h"
#include "tools/memsluice/doctor/host_files.h"

namespace memsluice::doctor {

// Reads everything but the daemon, which the caller asks.
Facts gather(const HostFiles& host);

std::optional<DeviceNodeFacts> stat_node(const std::string& path);

}  // namespace memsluice::doctor
