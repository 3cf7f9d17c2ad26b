// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/host/counters/channel_counters.h"

namespace memsluice {

// The text of docs/counters.md. Names without a node get none.
Result<std::vector<ChannelCounts>> parse_counters_text(std::string_view text);
std::string format_counters_text(const std::vector<ChannelCounts>& channels);

}  // namespace memsluice
