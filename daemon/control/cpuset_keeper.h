// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <map>
#include <string>

#include "daemon/base/log.h"
#include "daemon/channels/isolation.h"
#include "daemon/control/tenants.h"
#include "daemon/host/cpusets.h"
#include "daemon/host/paths.h"

namespace memsluice {

// Keeps cgroups off the channels that are exclusive, but for the tenants that have them.
class CpusetKeeper {
 public:
  CpusetKeeper(const Paths& paths, const Log& log)
      : paths_(paths), cpusets_(Cgroups(paths.cgroup_root)), log_(log) {}

  // Whether keep() has anything to do.
  bool is_needed(const Nodes& exclusive) const { return in_use_ || !exclusive.empty(); }
  // Compares and writes what differs. Never fails: what goes wrong is logged once, and tried again.
  void keep(const std::vector<TenantView>& tenants, const Nodes& exclusive);

 private:
  std::vector<CpusetState> read_below(const std::string& path);
  void carry_out(const CpusetWrite& write);
  void tell(const std::string& path, const Result<void>& result);

  Paths paths_;
  Cpusets cpusets_;
  const Log& log_;
  bool in_use_ = true;  // what another daemon has left is found at the first look
  std::map<std::string, std::string> complaints_;
};

}  // namespace memsluice
