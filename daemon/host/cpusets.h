// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <optional>
#include <string>

#include "daemon/base/result.h"
#include "daemon/host/cgroups.h"

namespace memsluice {

// cpuset.mems of cgroups, and a note that lives and dies with each of them, whoever restarts.
class Cpusets {
 public:
  explicit Cpusets(Cgroups cgroups) : cgroups_(std::move(cgroups)) {}

  // So that the cgroups right below this one have a cpuset.mems.
  Result<void> switch_on_below(const std::string& path) const;
  Result<std::string> mems(const std::string& path) const;
  std::optional<std::string> note(const std::string& path) const;
  // In the order in which being killed in between does no harm.
  Result<void> write(const std::string& path, const std::string& mems,
                     const std::optional<std::string>& note) const;

 private:
  Cgroups cgroups_;
};

}  // namespace memsluice
