// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/background.h"
#include "daemon/base/event_loop.h"
#include "daemon/host/cgroups.h"
#include "daemon/host/kernel_module.h"

namespace memsluice {

// What one node has of one cgroup. Paths are empty where nobody is charged, there is no tenant, or
// the cgroup has been removed.
struct CensusLine {
  memsluice_census_row row = {};
  std::string cgroup = {};
  std::string tenant = {};
};

std::vector<CensusLine> with_paths(const std::vector<memsluice_census_row>& rows,
                                   const std::vector<Cgroup>& cgroups);

// One line for each node and tenant, whose cgroup is the tenant's: all that is charged to it and to
// what lies below it. A last one of id 0 for what is no tenant's.
std::vector<CensusLine> by_tenant(const std::vector<CensusLine>& lines);

// Counts page frames. That takes some milliseconds a GiB, so it runs beside the loop, and is
// answered by it later: exactly once, unless this has ended before.
class Census {
 public:
  using Reply = std::function<void(const Result<std::vector<CensusLine>>&)>;

  // The loop and the module must outlive it.
  static Result<std::unique_ptr<Census>> create(Module& module, std::string cgroup_root,
                                                EventLoop& loop);

  // Of one node, or of all. An error is the answer: none comes later.
  Result<void> take(std::optional<int> node, Reply reply);
  bool busy() const { return background_->running() != 0; }

 private:
  Census(Module& module, std::string cgroup_root, std::unique_ptr<Background> background)
      : module_(module), cgroups_(std::move(cgroup_root)), background_(std::move(background)) {}

  Module& module_;
  Cgroups cgroups_;
  std::unique_ptr<Background> background_;
};

}  // namespace memsluice
