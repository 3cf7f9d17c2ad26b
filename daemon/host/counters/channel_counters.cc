// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/counters/channel_counters.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/host/counters/pmu_counters.h"
#include "daemon/host/counters/text_counters.h"

namespace memsluice {

std::unique_ptr<ChannelCounters> make_channel_counters(const CounterSettings& settings,
                                                       const Paths& paths) {
  if (settings.source == "none") return nullptr;
  if (settings.source == "pmu") return std::make_unique<PmuCounters>(settings, paths);
  return std::make_unique<TextCounters>(settings);
}

std::vector<std::string> apply_configured_nodes(const CounterSettings& settings,
                                                std::vector<ChannelCounts>& channels) {
  std::vector<std::string> notices;
  for (const auto& entry : settings.nodes) {
    auto channel = std::find_if(channels.begin(), channels.end(), [&](const ChannelCounts& counts) {
      return counts.name == entry.first;
    });
    if (channel == channels.end())
      notices.push_back(
          fmt::format("[counters.nodes] names {}, which is not counted", entry.first));
    else
      channel->node = entry.second;
  }
  const auto unknown = std::count_if(channels.begin(), channels.end(),
                                     [](const ChannelCounts& counts) { return !counts.node; });
  if (unknown > 0)
    notices.push_back(fmt::format(
        "of {} of {} channels it is not known which NUMA node they belong to: say it in "
        "[counters.nodes]",
        unknown, channels.size()));
  return notices;
}

}  // namespace memsluice
