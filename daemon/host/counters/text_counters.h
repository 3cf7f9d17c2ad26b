// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "daemon/host/counters/channel_counters.h"

namespace memsluice {

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
