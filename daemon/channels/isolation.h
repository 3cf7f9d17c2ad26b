// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace memsluice {

// Keeping cgroups off channels that are others', by cpuset.mems. Pure: what is, and what is to be
// done.

using Nodes = std::set<int>;

struct CpusetNote {
  std::string before;   // what somebody else had set
  std::string written;  // what took its place

  bool operator==(const CpusetNote&) const = default;
};

// A cgroup and its cpuset.mems ("": as the cgroup above).
struct CpusetState {
  std::string path;
  std::string mems;
  std::optional<CpusetNote> note = {};  // what was noted when it was written last
};

struct CpusetWrite {
  std::string path;
  std::string mems;
  std::optional<CpusetNote> note;  // to be noted; nullopt: it is as it was before us

  bool operator==(const CpusetWrite&) const = default;
};

// The cgroups whose children have to be told, sorted: the root, and those above tenants. What is
// below the children follows them by itself.
std::vector<std::string> cgroups_above(const std::map<std::string, Nodes>& tenants);

// The nodes that a cgroup may use: all but exclusive ones, and those of tenants at, above or below
// it.
Nodes allowed_nodes(const std::string& path, const std::map<std::string, Nodes>& tenants,
                    const Nodes& exclusive, const Nodes& all);

// What to write so that each cgroup is kept to `allowed_nodes`. What somebody else has set is made
// smaller only: by the nodes that are not allowed; if none would be left, it becomes what is
// allowed. Where all are allowed, also since there are no exclusive nodes any more, it becomes what
// it was.
std::vector<CpusetWrite> plan_isolation(const std::vector<CpusetState>& cgroups,
                                        const std::map<std::string, Nodes>& tenants,
                                        const Nodes& exclusive, const Nodes& all);

// "0-2,5", as the kernel writes it.
std::string format_nodes(const Nodes& nodes);

}  // namespace memsluice
