// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/desired_state.h"

namespace memsluice {

std::string_view origin_name(Origin origin) {
  switch (origin) {
    case Origin::kConfig:
      return "config";
    case Origin::kApi:
      return "api";
    case Origin::kModule:
      break;
  }
  return "module";
}

Error no_tenant(const std::string& path) {
  return {.code = ErrorCode::kNotFound,
          .object = path,
          .message = "is no tenant",
          .hint = "memsluice tenant list shows them, memsluice tenant set makes one"};
}

const TenantRule* find_rule(const Config& config, const std::string& path) {
  const TenantRule* found = nullptr;
  for (const TenantRule& rule : config.tenants) {
    if (rule.cgroup == path) return &rule;
    if (glob_matches(rule.cgroup, path)) found = &rule;
  }
  return found;
}

Policies configured_policies(const Config& config, const std::vector<Cgroup>& cgroups,
                             uint64_t tier_0_bytes) {
  Policies policies;
  for (const Cgroup& cgroup : cgroups)
    if (const TenantRule* rule = find_rule(config, cgroup.path))
      policies[cgroup.id] = {
          cgroup.path, rule->settings.or_else(config.defaults).applied_to(Policy(), tier_0_bytes)};
  return policies;
}

Plan make_plan(const Policies& configured, const Policies& set_by_api,
               const std::map<uint64_t, Policy>& in_module, const std::set<uint64_t>& ours) {
  Policies wanted = set_by_api;
  wanted.insert(configured.begin(), configured.end());

  Plan plan;
  for (const auto& [id, policy] : in_module) {
    if (wanted.contains(id)) continue;
    if (ours.contains(id))
      plan.actions.push_back({.kind = Action::Kind::kClear, .cgroup_id = id});
    else
      plan.origins[id] = Origin::kModule;
  }
  for (const auto& [id, named] : wanted) {
    plan.origins[id] = set_by_api.contains(id) ? Origin::kApi : Origin::kConfig;
    auto present = in_module.find(id);
    if (present == in_module.end() || present->second != named.policy)
      plan.actions.push_back({Action::Kind::kSet, id, named.path, named.policy});
  }
  return plan;
}

}  // namespace memsluice
