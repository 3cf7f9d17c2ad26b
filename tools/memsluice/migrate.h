// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "tools/memsluice/arguments.h"
#include "tools/memsluice/run.h"

namespace memsluice {

// Begins a migration and, unless it is detached, waits for its end; the signal that asks to stop
// cancels it.
Result<int> run_migrate(const MigrateCommand& command, bool json, const Environment& environment);

}  // namespace memsluice
