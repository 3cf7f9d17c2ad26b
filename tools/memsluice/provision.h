// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "tools/memsluice/arguments.h"
#include "tools/memsluice/run.h"

namespace memsluice {

// Works without daemon and module. Changes nothing but the directory that it writes to.
Result<int> run_provision(const ProvisionCommand& command, bool json,
                          const Environment& environment);

}  // namespace memsluice
