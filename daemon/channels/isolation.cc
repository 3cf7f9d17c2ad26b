// SPDX-License-Identifier: GPL-2.0
#include "daemon/channels/isolation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "daemon/host/cgroups.h"
#include "daemon/host/files.h"

namespace memsluice {
namespace {

Nodes without(const Nodes& nodes, const Nodes& others) {
  Nodes left;
  std::set_difference(nodes.begin(), nodes.end(), others.begin(), others.end(),
                      std::inserter(left, left.end()));
  return left;
}

Nodes common(const Nodes& a, const Nodes& b) {
  Nodes both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
  return both;
}

Nodes parse_nodes(const std::string& text) {
  const auto ids = parse_id_list(text);
  return Nodes(ids.begin(), ids.end());
}

std::optional<CpusetWrite> plan_one(const CpusetState& cgroup, const Nodes& allowed,
                                    const Nodes& all) {
  const bool ours = cgroup.note && cgroup.note->written == cgroup.mems;
  const std::string before = ours ? cgroup.note->before : cgroup.mems;
  const Nodes set = before.empty() ? all : parse_nodes(before);
  Nodes wanted = common(set, allowed);
  if (wanted == common(set, all)) {
    if (!cgroup.note) return std::nullopt;
    return CpusetWrite{cgroup.path, before, std::nullopt};
  }
  if (wanted.empty()) wanted = allowed;
  std::string text = format_nodes(wanted);
  if (ours && text == cgroup.mems) return std::nullopt;
  return CpusetWrite{cgroup.path, text, CpusetNote{before, text}};
}

}  // namespace

std::vector<std::string> cgroups_above(const std::map<std::string, Nodes>& tenants) {
  std::set<std::string> above = {"/"};
  for (const auto& [path, nodes] : tenants)
    for (std::string at = parent_path(path); at != "/"; at = parent_path(at)) above.insert(at);
  return {above.begin(), above.end()};
}

Nodes allowed_nodes(const std::string& path, const std::map<std::string, Nodes>& tenants,
                    const Nodes& exclusive, const Nodes& all) {
  Nodes allowed = without(all, exclusive);
  for (const auto& [tenant, nodes] : tenants)
    if (tenant == path || is_below(tenant, path) || is_below(path, tenant))
      allowed.insert(nodes.begin(), nodes.end());
  return common(allowed, all);
}

std::vector<CpusetWrite> plan_isolation(const std::vector<CpusetState>& cgroups,
                                        const std::map<std::string, Nodes>& tenants,
                                        const Nodes& exclusive, const Nodes& all) {
  std::vector<CpusetWrite> writes;
  for (const CpusetState& cgroup : cgroups) {
    const Nodes allowed =
        exclusive.empty() ? all : allowed_nodes(cgroup.path, tenants, exclusive, all);
    if (allowed.empty()) continue;
    if (auto write = plan_one(cgroup, allowed, all)) writes.push_back(*std::move(write));
  }
  return writes;
}

std::string format_nodes(const Nodes& nodes) {
  std::string text;
  for (auto at = nodes.begin(); at != nodes.end();) {
    const int first = *at;
    int last = first;
    for (++at; at != nodes.end() && *at == last + 1; ++at) last = *at;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last > first) text += fmt::format("-{}", last);
  }
  return text;
}

}  // namespace memsluice
