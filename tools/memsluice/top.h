// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "tools/memsluice/arguments.h"
#include "tools/memsluice/run.h"

namespace memsluice {

// On a terminal until the user ends it, else one picture (or object) after the other.
Result<int> run_top(const TopCommand& command, bool json, const Environment& environment);

}  // namespace memsluice
