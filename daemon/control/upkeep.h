// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/control/migrations.h"
#include "daemon/control/tenants.h"
#include "daemon/host/placement.h"

namespace memsluice {

// How many of a tenant's bytes would have to move so that each channel has its weight of them.
// `node_bytes`: of processes' own and shared memory. What lies on channels of weight 0 may have
// found the others full, and is not counted.
uint64_t misplaced_bytes(const Placement& placement, const std::map<int, uint64_t>& node_bytes);

// What each tenant itself has on its nodes, without the tenants below it. By cgroup id.
std::map<uint64_t, std::map<int, uint64_t>> own_bytes(const std::vector<TenantView>& tenants);

// What lies where it lay before its tenant was placed, or was put elsewhere by the kernel: by
// khugepaged, by reclaim and swap, when channels were full. A request brings it to its channels,
// with a bounded rate; and less and less often if that moves nothing.
class Upkeep {
 public:
  Upkeep(Tenants& tenants, Migrations& migrations, const Clock& clock, const Log& log)
      : tenants_(tenants), migrations_(migrations), clock_(clock), log_(log) {}

  // Once a period; `mib_per_s` for each request.
  void look(Milliseconds period, uint32_t mib_per_s);
  // Somebody brings the tenant's pages to their channels himself: what runs for it ends, and the
  // next look at it waits, for long where pages move when they are touched.
  void make_way(uint64_t cgroup_id, bool on_touch);

 private:
  struct Care {
    uint64_t request = 0;  // that runs, or has just ended; 0: none
    Milliseconds next{0};
    Milliseconds pause{0};
  };

  // Whether its request has ended, and what comes of that.
  bool has_ended(const std::string& path, Care& care, Milliseconds period);
  bool somebody_moves(const std::string& path);
  void care_for(const TenantView& tenant, const std::map<int, uint64_t>& node_bytes,
                Milliseconds period, uint32_t mib_per_s);

  Tenants& tenants_;
  Migrations& migrations_;
  const Clock& clock_;
  const Log& log_;
  std::map<uint64_t, Care> cares_;  // by cgroup id
};

}  // namespace memsluice
