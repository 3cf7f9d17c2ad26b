// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>

#include "daemon/base/result.h"
#include "daemon/bpf/lost_time_map.h"

namespace memsluice {

// By enum lost_time_cause, as the API has them.
inline constexpr std::array<const char*, LOST_TIME_CAUSES> kLostTimeCauses = {
    "page_fault", "migration", "reclaim"};

// How long the tasks of tenants were held up. Counts from when it was made, and of each tenant from
// when it was named, until it is not any more.
class LostTimeCounters {
 public:
  virtual ~LostTimeCounters() = default;

  // By cgroup id. What is held up in a cgroup counts for the nearest tenant at or above it.
  virtual Result<void> set_tenants(const std::set<uint64_t>& tenants) = 0;
  // Not found: it is no tenant.
  virtual Result<lost_time> of(uint64_t tenant) = 0;
};

using LoadLostTimeCounters = std::function<Result<std::unique_ptr<LostTimeCounters>>()>;

// Into the kernel, which lets go of them when they end.
Result<std::unique_ptr<LostTimeCounters>> load_lost_time_counters();

}  // namespace memsluice
