// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/tenants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>

#include "daemon/base/units.h"
#include "daemon/host/numa.h"

namespace memsluice {
namespace {

std::string describe(const Policy& policy) {
  std::string text = fmt::format(
      "tiering {}, fast limit {}, promote {} MiB/s, demote {} MiB/s", policy.tiering ? "on" : "off",
      policy.fast_limit_bytes == MEMSLUICE_NO_LIMIT ? "none"
                                                    : format_bytes_exact(policy.fast_limit_bytes),
      policy.promote_mib_per_s, policy.demote_mib_per_s);
  const Placement& placement = policy.placement;
  if (!placement.channels.empty())
    text += fmt::format(", channels {}, granule {}", format_channels(placement.channels),
                        format_bytes_exact(granule_bytes(placement.granule_order)));
  return text;
}

// The module refuses both with the same errno.
Error explained(Error error, const Fd& cgroup) {
  if (error.os_error != EOPNOTSUPP || Cgroups::charges_memory(cgroup)) return error;
  error.code = ErrorCode::kConflict;
  error.message = "its memory controller is off";
  error.hint =
      "MemoryAccounting=yes of a systemd unit, or +memory in cgroup.subtree_control of the cgroup "
      "above, turns it on";
  return error;
}

Error about(Error error, const std::string& object) {
  error.object = object;
  return error;
}

bool is_gone(const Error& error) {
  return error.code == ErrorCode::kNotFound;
}

bool is_share(const PolicySettings& settings) {
  return settings.fast_limit && settings.fast_limit->percent;
}

}  // namespace

Tenants::Tenants(Module& module, const Paths& paths, const Log& log, Config config,
                 LostTimes* lost_times)
    : module_(module),
      lost_times_(lost_times),
      log_(log),
      paths_(paths),
      cgroups_(paths.cgroup_root),
      knobs_(paths.module_knobs),
      config_(std::move(config)) {}

void Tenants::tell(const std::string& object, const Result<void>& result) {
  auto known = complaints_.find(object);
  if (result.ok()) {
    if (known == complaints_.end()) return;
    complaints_.erase(known);
    log_.info("{}: works again", object);
    return;
  }
  std::string text = result.error().describe();
  if (known != complaints_.end() && known->second == text) return;
  log_.error("{}", text);
  complaints_[object] = std::move(text);
}

bool Tenants::module_is_there() {
  auto info = module_.info();
  if (!info.ok()) {
    tell("module", info.error());
    module_instance_.reset();
    origins_.clear();
    tell_lost_times();
    return false;
  }
  if (module_instance_ == info->instance) return true;
  complaints_.erase("module");
  log_.info("module {} is loaded and can: {}", info->release,
            fmt::join(info->feature_names(), ", "));
  module_instance_ = info->instance;
  ours_.clear();
  tell("module values", apply_knobs(config_));
  return true;
}

Result<void> Tenants::apply_knobs(const Config& config) {
  auto values = config.module_values();
  if (values.empty()) return {};
  auto applied = knobs_.apply(values);
  if (!applied.ok()) return std::move(applied).error();
  if (*applied > 0) log_.info("{} values of the module changed", *applied);
  return {};
}

Result<uint64_t> Tenants::tier_0_bytes_if_needed() const {
  const bool needed = is_share(config_.defaults) ||
                      std::any_of(config_.tenants.begin(), config_.tenants.end(),
                                  [](const TenantRule& rule) { return is_share(rule.settings); });
  if (!needed) return uint64_t{0};
  auto nodes = read_numa_nodes(paths_);
  if (!nodes.ok()) return std::move(nodes).error();
  return tier_0_bytes(*nodes);
}

std::vector<Cgroup> Tenants::cgroups_named_in_config() const {
  std::vector<Cgroup> cgroups;
  for (const TenantRule& rule : config_.tenants)
    for (Cgroup& cgroup : cgroups_.match(rule.cgroup)) cgroups.push_back(std::move(cgroup));
  return cgroups;
}

Result<std::map<uint64_t, Policy>> Tenants::policies_in_module() {
  auto ids = module_.tenant_list();
  if (!ids.ok()) return std::move(ids).error();
  std::map<uint64_t, Policy> policies;
  for (uint64_t id : *ids) {
    auto policy = policy_in_module(id);
    if (policy.ok())
      policies[id] = *std::move(policy);
    else if (!is_gone(policy.error()))
      return std::move(policy).error();
  }
  return policies;
}

Result<Policy> Tenants::policy_in_module(uint64_t cgroup_id) {
  auto status = module_.tenant_status(cgroup_id);
  if (!status.ok()) return std::move(status).error();
  auto placed = module_.tenant_placement(cgroup_id);
  if (!placed.ok()) return std::move(placed).error();
  Policy policy = from_kernel(status->policy);
  policy.placement = std::move(placed->placement);
  return policy;
}

void Tenants::forget_ended_cgroups() {
  std::erase_if(set_by_api_, [&](const auto& entry) {
    auto cgroup = cgroups_.find(entry.second.path);
    return !cgroup.ok() || cgroup->id != entry.first;
  });
}

Result<void> Tenants::carry_out(const Action& action) {
  if (action.kind == Action::Kind::kClear) {
    auto cleared = module_.tenant_clear(action.cgroup_id);
    if (!cleared.ok() && !is_gone(cleared.error())) return cleared;
    log_.info("cgroup {}: no tenant any more", action.cgroup_id);
    return {};
  }
  auto cgroup = cgroups_.open(action.path);
  if (!cgroup.ok()) return std::move(cgroup).error();
  // The path may be another cgroup's by now; then the next round sees to it.
  auto id = Cgroups::id_of(*cgroup);
  if (!id.ok() || *id != action.cgroup_id) return {};
  auto set = module_.tenant_set(*cgroup, action.policy);
  if (!set.ok()) return explained(std::move(set).error(), *cgroup);
  log_.info("{}: {}", action.path, describe(action.policy));
  return {};
}

void Tenants::tell_lost_times() {
  if (lost_times_ == nullptr) return;
  std::set<uint64_t> tenants;
  for (const auto& [id, origin] : origins_) tenants.insert(id);
  lost_times_->set_tenants(tenants);
}

void Tenants::reconcile() {
  if (!module_is_there()) return;
  forget_ended_cgroups();
  auto tier_0 = tier_0_bytes_if_needed();
  auto in_module = policies_in_module();
  if (!tier_0.ok() || !in_module.ok()) {
    const Error error = tier_0.ok() ? in_module.error() : tier_0.error();
    tell("tenants", error.with_context("nothing is changed"));
    return;
  }
  tell("tenants", {});

  auto configured = configured_policies(config_, cgroups_named_in_config(), *tier_0);
  Plan plan = make_plan(configured, set_by_api_, *in_module, ours_);
  origins_ = std::move(plan.origins);
  tell_lost_times();
  std::erase_if(ours_, [&](uint64_t id) { return !in_module->contains(id); });
  for (const auto& [id, origin] : origins_)
    if (origin != Origin::kModule) ours_.insert(id);
  for (const Action& action : plan.actions) {
    const std::string object =
        action.path.empty() ? fmt::format("cgroup {}", action.cgroup_id) : action.path;
    auto done = carry_out(action);
    if (done.ok() && action.kind == Action::Kind::kClear) ours_.erase(action.cgroup_id);
    // A cgroup may end at any moment: that is no news.
    if (!done.ok() && is_gone(done.error())) continue;
    tell(object, done.ok() ? done : Result<void>(about(done.error(), object)));
  }
}

Result<bool> Tenants::reload(Config config) {
  if (module_.info().ok())
    if (auto applied = apply_knobs(config); !applied.ok()) return std::move(applied).error();
  const bool changed = config != config_;
  config_ = std::move(config);
  std::erase_if(set_by_api_, [&](const auto& entry) {
    return find_rule(config_, entry.second.path) != nullptr;
  });
  reconcile();
  return changed;
}

std::optional<TenantView> Tenants::view(uint64_t cgroup_id, const std::string& path) {
  auto status = module_.tenant_status(cgroup_id);
  auto placed = module_.tenant_placement(cgroup_id);
  if (!status.ok() || !placed.ok()) return std::nullopt;
  TenantView view{.cgroup = {path, cgroup_id}, .status = *status, .placed = *std::move(placed)};
  if (auto origin = origins_.find(cgroup_id); origin != origins_.end())
    view.origin = origin->second;
  if (auto cgroup = cgroups_.open(path); cgroup.ok()) view.memory = Cgroups::memory(*cgroup);
  if (lost_times_ != nullptr) view.lost = lost_times_->of(cgroup_id);
  return view;
}

Result<std::vector<TenantView>> Tenants::list() {
  auto ids = module_.tenant_list();
  if (!ids.ok()) return std::move(ids).error();
  std::vector<TenantView> views;
  if (ids->empty()) return views;
  // The module knows no paths. Only a walk finds those that others have made tenants.
  for (const Cgroup& cgroup : cgroups_.all())
    if (std::binary_search(ids->begin(), ids->end(), cgroup.id))
      if (auto seen = view(cgroup.id, cgroup.path)) views.push_back(*std::move(seen));
  return views;
}

Result<TenantView> Tenants::get(const std::string& path) {
  auto cgroup = cgroups_.find(path);
  if (!cgroup.ok()) return std::move(cgroup).error();
  auto status = module_.tenant_status(cgroup->id);
  if (!status.ok()) {
    if (is_gone(status.error())) return no_tenant(path);
    return std::move(status).error();
  }
  if (auto seen = view(cgroup->id, path)) return *std::move(seen);
  return no_tenant(path);
}

Result<Policy> Tenants::policy_before_set(uint64_t cgroup_id) {
  auto policy = policy_in_module(cgroup_id);
  if (policy.ok() || !is_gone(policy.error())) return policy;
  auto tier_0 = tier_0_bytes_if_needed();
  if (!tier_0.ok()) return std::move(tier_0).error();
  return config_.defaults.applied_to(Policy(), *tier_0);
}

Result<TenantView> Tenants::set(const std::string& path, const PolicySettings& settings) {
  auto cgroup = cgroups_.open(path);
  if (!cgroup.ok()) return std::move(cgroup).error();
  auto id = Cgroups::id_of(*cgroup);
  if (!id.ok()) return about(std::move(id).error(), path);
  auto before = policy_before_set(*id);
  if (!before.ok()) return std::move(before).error();
  Policy policy = settings.applied_to(*before, 0);
  if (settings.channel_change) {
    auto channels = changed(before->placement.channels, *settings.channel_change);
    if (!channels.ok()) return std::move(channels).error();
    policy.placement.channels = *std::move(channels);
    policy.placement.granule_order =
        settings.granule_order.value_or(before->placement.granule_order);
  }
  auto set = module_.tenant_set(*cgroup, policy);
  if (!set.ok()) {
    Error error = explained(std::move(set).error(), *cgroup);
    return error.object.empty() ? about(std::move(error), path) : error;
  }
  log_.info("{}: {} (set through the API)", path, describe(policy));
  set_by_api_[*id] = {path, policy};
  origins_[*id] = Origin::kApi;
  tell_lost_times();
  ours_.insert(*id);
  return get(path);
}

Result<void> Tenants::clear(const std::string& path) {
  auto cgroup = cgroups_.find(path);
  if (!cgroup.ok()) return std::move(cgroup).error();
  if (const TenantRule* rule = find_rule(config_, path)) {
    if (set_by_api_.erase(cgroup->id) == 0)
      return Error{
          .code = ErrorCode::kConflict,
          .object = path,
          .message = fmt::format("the configuration makes it a tenant (\"{}\")", rule->cgroup),
          .hint = "take it out there, then systemctl reload memsluiced"};
    reconcile();
    return {};
  }
  auto cleared = module_.tenant_clear(cgroup->id);
  if (!cleared.ok() && is_gone(cleared.error())) return no_tenant(path);
  if (!cleared.ok()) return cleared;
  log_.info("{}: no tenant any more (cleared through the API)", path);
  set_by_api_.erase(cgroup->id);
  ours_.erase(cgroup->id);
  origins_.erase(cgroup->id);
  tell_lost_times();
  return {};
}

}  // namespace memsluice
