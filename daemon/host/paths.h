// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>

namespace memsluice {

// Where the host says what it is. Tests put a directory of their own in front.
struct Paths {
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string nodes = "/sys/devices/system/node";
  std::string cpus = "/sys/devices/system/cpu";
  std::string event_sources = "/sys/bus/event_source/devices";
  std::string memory_tiers = "/sys/devices/virtual/memory_tiering";
  std::string module_knobs = "/sys/kernel/memsluice";
  std::string dsa_bus = "/sys/bus/dsa";
  std::string migration_statistics = "/proc/memsluice/migration";
  std::string device = "/dev/memsluice";

  // The same, with the tree of cgroups v2 where it is mounted here.
  static Paths of_this_host();
};

// The mount point of the first cgroup2 in the text of /proc/self/mounts; empty if there is none.
std::string cgroup2_mount(const std::string& mounts);

}  // namespace memsluice
