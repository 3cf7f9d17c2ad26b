// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>

namespace memsluice {

// Where the host says what it is. Tests put a directory of their own in front.
struct Paths {
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string nodes = "/sys/devices/system/node";
  std::string memory_tiers = "/sys/devices/virtual/memory_tiering";
  std::string module_knobs = "/sys/kernel/memsluice";
  std::string device = "/dev/memsluice";
};

}  // namespace memsluice
