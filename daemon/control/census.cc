// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/census.h"

#include <fmt/format.h>

#include <cerrno>
#include <map>
#include <tuple>
#include <unordered_map>

namespace memsluice {
namespace {

void add(memsluice_census_row& sum, const memsluice_census_row& row) {
  for (size_t kind = 0; kind < MEMSLUICE_FRAME_KINDS_ROOM; kind++) {
    sum.pages[kind] += row.pages[kind];
    sum.held_pages[kind] += row.held_pages[kind];
  }
}

Result<std::vector<CensusLine>> take_census(Module& module, const Cgroups& cgroups,
                                            std::optional<int> node) {
  auto rows = module.census(node);
  if (!rows.ok()) {
    if (rows.error().os_error != ENODEV) return std::move(rows).error();
    return Error{.code = ErrorCode::kNotFound,
                 .object = fmt::format("node {}", node.value_or(-1)),
                 .message = "has no memory",
                 .hint = "memsluice status lists those that have"};
  }
  // Afterwards, so that what came meanwhile has its name.
  return with_paths(*rows, cgroups.all());
}

}  // namespace

std::vector<CensusLine> with_paths(const std::vector<memsluice_census_row>& rows,
                                   const std::vector<Cgroup>& cgroups) {
  std::unordered_map<uint64_t, const std::string*> paths;
  for (const Cgroup& cgroup : cgroups) paths[cgroup.id] = &cgroup.path;
  const auto path_of = [&](uint64_t id) {
    auto path = paths.find(id);
    return path == paths.end() ? std::string() : *path->second;
  };
  std::vector<CensusLine> lines;
  lines.reserve(rows.size());
  for (const memsluice_census_row& row : rows)
    lines.push_back({row, path_of(row.cgroup_id), path_of(row.tenant_id)});
  return lines;
}

std::vector<CensusLine> by_tenant(const std::vector<CensusLine>& lines) {
  // Node, then tenants before what is no tenant's.
  std::map<std::tuple<int, bool, uint64_t>, CensusLine> sums;
  for (const CensusLine& line : lines) {
    const uint64_t tenant = line.row.tenant_id;
    CensusLine& sum = sums[{line.row.node, tenant == 0, tenant}];
    sum.row.node = line.row.node;
    sum.row.cgroup_id = sum.row.tenant_id = tenant;
    sum.cgroup = sum.tenant = line.tenant;
    add(sum.row, line.row);
  }
  std::vector<CensusLine> tenants;
  tenants.reserve(sums.size());
  for (auto& [key, sum] : sums) tenants.push_back(std::move(sum));
  return tenants;
}

Result<std::unique_ptr<Census>> Census::create(Module& module, std::string cgroup_root,
                                               EventLoop& loop) {
  auto background = Background::create(loop);
  if (!background.ok()) return std::move(background).error();
  return std::unique_ptr<Census>(
      new Census(module, std::move(cgroup_root), *std::move(background)));
}

Result<void> Census::take(std::optional<int> node, Reply reply) {
  return background_->run<std::vector<CensusLine>>(
      [&module = module_, &cgroups = cgroups_, node] { return take_census(module, cgroups, node); },
      std::move(reply));
}

}  // namespace memsluice
