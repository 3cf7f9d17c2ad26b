// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "tools/memsluice/arguments.h"
#include "tools/memsluice/run.h"

namespace memsluice {

// Both work without the daemon, and say so when it is not there.
Result<int> run_doctor(const DoctorCommand& command, bool json, const Environment& environment);
Result<int> run_version(bool json, const Environment& environment);

}  // namespace memsluice
