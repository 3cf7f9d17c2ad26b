// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/base/log.h"
#include "daemon/control/config.h"
#include "daemon/control/desired_state.h"
#include "daemon/control/lost_times.h"
#include "daemon/host/cgroups.h"
#include "daemon/host/kernel_module.h"
#include "daemon/host/knobs.h"
#include "daemon/host/paths.h"

namespace memsluice {

struct TenantView {
  Cgroup cgroup;
  Origin origin = Origin::kModule;
  memsluice_tenant_status status = {};
  PlacementStatus placed = {};
  CgroupMemory memory = {};
  std::optional<lost_time> lost = {};
};

// Keeps the module's tenants as the configuration and the API want them.
//
// What is wanted is compared with what the module has, each time anew. So it does not matter what
// happened in between: cgroups that came or went, another program's ioctl, the module or this
// daemon loaded or started again.
class Tenants {
 public:
  // With @lost_times their views say what they lose; it is kept told who is a tenant.
  Tenants(Module& module, const Paths& paths, const Log& log, Config config,
          LostTimes* lost_times = nullptr);

  // Never fails: what goes wrong is logged when it begins and when it ends, and tried again.
  void reconcile();

  // All of the new configuration or, with an error, none. Whether it says anything new.
  Result<bool> reload(Config config);
  const Config& config() const { return config_; }

  // As of the last look.
  bool module_is_loaded() const { return module_instance_.has_value(); }
  const LostTimes* lost_times() const { return lost_times_; }
  size_t count() const { return origins_.size(); }

  // By path.
  Result<std::vector<TenantView>> list();
  Result<TenantView> get(const std::string& path);
  Result<TenantView> set(const std::string& path, const PolicySettings& settings);
  Result<void> clear(const std::string& path);

 private:
  void tell_lost_times();
  bool module_is_there();
  Result<uint64_t> tier_0_bytes_if_needed() const;
  std::vector<Cgroup> cgroups_named_in_config() const;
  Result<std::map<uint64_t, Policy>> policies_in_module();
  void forget_ended_cgroups();
  Result<void> carry_out(const Action& action);
  Result<void> apply_knobs(const Config& config);
  Result<Policy> policy_in_module(uint64_t cgroup_id);
  Result<Policy> policy_before_set(uint64_t cgroup_id);
  std::optional<TenantView> view(uint64_t cgroup_id, const std::string& path);
  void tell(const std::string& object, const Result<void>& result);

  Module& module_;
  LostTimes* const lost_times_;
  const Log& log_;
  Paths paths_;
  Cgroups cgroups_;
  Knobs knobs_;
  Config config_;

  std::optional<uint64_t> module_instance_;
  Policies set_by_api_;
  // Tenants whose policy is ours to take away.
  std::set<uint64_t> ours_;
  std::map<uint64_t, Origin> origins_;
  // What has been logged of an object and not got better since.
  std::map<std::string, std::string> complaints_;
};

}  // namespace memsluice
