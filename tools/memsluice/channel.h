// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "tools/memsluice/arguments.h"
#include "tools/memsluice/run.h"

namespace memsluice {

// Waits until the channel is gone, or its deadline has passed; on a terminal it shows how far it
// is.
Result<int> run_channel_remove(const ChannelRemoveCommand& command, bool json,
                               const Environment& environment);

}  // namespace memsluice
