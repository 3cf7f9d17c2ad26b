// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "daemon/base/json.h"
#include "daemon/control/bandwidth.h"
#include "daemon/control/census.h"
#include "daemon/control/channels.h"
#include "daemon/control/engines.h"
#include "daemon/control/migrations.h"
#include "daemon/control/tenants.h"
#include "daemon/host/kernel_module.h"
#include "daemon/host/numa.h"

namespace memsluice {

// The objects of docs/api.md.
Json to_json(const Policy& policy);
Json to_json(const NumaNode& node);
Json to_json(const TenantView& tenant);
Json to_json(const RequestView& request);
Json to_json(const EngineInfo& engine);
Json to_json(const CensusLine& line);
Json to_json(const memsluice_channel_status& channel);
Json to_json(const RemovedChannel& removed);
// With so many of the last samples of each channel, oldest first.
Json to_json(const Bandwidth& bandwidth, size_t samples);
Json to_json(const QueueName& queue);
Json to_json(const DsaResetOutcome& outcome);
Json to_json(const Result<ModuleInfo>& module);

template <typename T>
Json to_json(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(to_json(item));
  return list;
}

}  // namespace memsluice
