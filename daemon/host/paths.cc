// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/paths.h"

#include <sstream>

#include "daemon/host/files.h"

namespace memsluice {

std::string cgroup2_mount(const std::string& mounts) {
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string device, directory, type;
    if (fields >> device >> directory >> type && type == "cgroup2") return directory;
  }
  return {};
}

Paths Paths::of_this_host() {
  Paths paths;
  auto mounts = read_file(AT_FDCWD, "/proc/self/mounts");
  if (!mounts.ok()) return paths;
  if (std::string mount = cgroup2_mount(*mounts); !mount.empty()) paths.cgroup_root = mount;
  return paths;
}

}  // namespace memsluice
