// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/host/counters/channel_counters.h"

namespace memsluice {

// The text of docs/counters.md. Names without a node get none.
Result<std::vector<ChannelCounts>> parse_counters_text(std::string_view text);
std::string format_counters_text(const std::vector<ChannelCounts>& channels);

// What another program counts and tells: at each connection to a unix socket, or every few seconds
// in a file that it replaces.
class TextCounters : public ChannelCounters {
 public:
  explicit TextCounters(CounterSettings settings) : settings_(std::move(settings)) {}

  Result<CountersReading> read() override;

 private:
  const CounterSettings settings_;
};

}  // namespace memsluice
