// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/cpuset_keeper.h"

#include "daemon/host/numa.h"

namespace memsluice {
namespace {

std::string note_text(const CpusetNote& note) {
  return note.before + "\n" + note.written;
}

std::optional<CpusetNote> parse_note(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const size_t end = text->find('\n');
  if (end == std::string::npos) return std::nullopt;
  return CpusetNote{text->substr(0, end), text->substr(end + 1)};
}

std::map<std::string, Nodes> nodes_by_tenant(const std::vector<TenantView>& tenants) {
  std::map<std::string, Nodes> nodes;
  for (const TenantView& tenant : tenants)
    for (const Channel& channel : tenant.placed.placement.channels)
      nodes[tenant.cgroup.path].insert(static_cast<int>(channel.node));
  return nodes;
}

}  // namespace

void CpusetKeeper::tell(const std::string& path, const Result<void>& result) {
  // A cgroup may end at any moment: that is no news.
  if (result.ok() || result.error().code == ErrorCode::kNotFound) {
    complaints_.erase(path);
    return;
  }
  std::string text = result.error().describe();
  if (complaints_[path] == text) return;
  log_.error("{}: cannot be kept off the channels of others: {}", path, text);
  complaints_[path] = std::move(text);
}

std::vector<CpusetState> CpusetKeeper::read_below(const std::string& path) {
  std::vector<CpusetState> states;
  for (std::string& child : Cgroups(paths_.cgroup_root).children(path)) {
    auto mems = cpusets_.mems(child);
    if (!mems.ok()) continue;
    auto note = parse_note(cpusets_.note(child));
    states.push_back({std::move(child), *std::move(mems), std::move(note)});
  }
  return states;
}

void CpusetKeeper::carry_out(const CpusetWrite& write) {
  const auto note = write.note ? std::optional(note_text(*write.note)) : std::nullopt;
  auto written = cpusets_.write(write.path, write.mems, note);
  if (written.ok())
    log_.info("{}: cpuset.mems is {}", write.path,
              write.mems.empty() ? "as the cgroup above" : write.mems);
  tell(write.path, written);
}

void CpusetKeeper::keep(const std::vector<TenantView>& tenants, const Nodes& exclusive) {
  auto known = read_numa_nodes(paths_);
  if (!known.ok()) return;
  Nodes all;
  for (const NumaNode& node : *known) all.insert(node.id);
  const auto by_tenant = nodes_by_tenant(tenants);
  std::vector<CpusetState> states;
  for (const std::string& path : cgroups_above(by_tenant)) {
    if (!exclusive.empty()) tell(path, cpusets_.switch_on_below(path));
    for (CpusetState& state : read_below(path)) states.push_back(std::move(state));
  }
  for (const CpusetWrite& write : plan_isolation(states, by_tenant, exclusive, all))
    carry_out(write);
  in_use_ = !exclusive.empty();
}

}  // namespace memsluice
