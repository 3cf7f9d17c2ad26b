// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/control/config.h"
#include "daemon/host/cgroups.h"
#include "daemon/host/kernel_module.h"

namespace memsluice {

// Whose policy a tenant has.
enum class Origin { kConfig, kApi, kModule };

std::string_view origin_name(Origin origin);

Error no_tenant(const std::string& path);

struct NamedPolicy {
  std::string path;
  Policy policy;

  bool operator==(const NamedPolicy&) const = default;
};

// By id of the cgroup.
using Policies = std::map<uint64_t, NamedPolicy>;

// The rule that names this cgroup: its own path or, failing that, the last pattern that matches.
const TenantRule* find_rule(const Config& config, const std::string& path);

// What the configuration wants of the cgroups that there are.
Policies configured_policies(const Config& config, const std::vector<Cgroup>& cgroups,
                             uint64_t tier_0_bytes);

struct Action {
  enum class Kind { kSet, kClear };

  Kind kind = Kind::kSet;
  uint64_t cgroup_id = 0;
  std::string path = {};
  Policy policy = {};

  bool operator==(const Action&) const = default;
};

struct Plan {
  std::vector<Action> actions = {};
  std::map<uint64_t, Origin> origins = {};  // of all tenants there are once it is carried out
};

// What to do so that the module has every policy that is configured or set through the API (which
// goes first), has none any more that was ours and is no longer wanted, and keeps all others: those
// belong to whoever set them.
Plan make_plan(const Policies& configured, const Policies& set_by_api,
               const std::map<uint64_t, Policy>& in_module, const std::set<uint64_t>& ours);

}  // namespace memsluice
