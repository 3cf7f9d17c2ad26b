// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "tools/memsluice/arguments.h"
#include "tools/memsluice/run.h"

namespace memsluice {

// Tests or drains one queue after the other, a line for each; ends as the first that fails does.
Result<int> run_engine_queues(const EngineQueuesCommand& command, bool json,
                              const Environment& environment);

// Asks first, unless told not to: a reset is for all who use the device.
Result<int> run_engine_reset(const EngineResetCommand& command, bool json,
                             const Environment& environment);

}  // namespace memsluice
