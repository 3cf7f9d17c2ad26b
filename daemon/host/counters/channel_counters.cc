// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/counters/channel_counters.h"

#include "daemon/host/counters/pmu_counters.h"
#include "daemon/host/counters/text_counters.h"

namespace memsluice {

std::unique_ptr<ChannelCounters> make_channel_counters(const CounterSettings& settings,
                                                       const Paths& paths) {
  if (settings.source == "none") return nullptr;
  if (settings.source == "pmu") return std::make_unique<PmuCounters>(settings, paths);
  return std::make_unique<TextCounters>(settings);
}

}  // namespace memsluice
