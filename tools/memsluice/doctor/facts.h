// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/host/kernel_module.h"

namespace memsluice::doctor {

// What was found on the host, not judged yet. An empty optional: the host does not say.

struct KernelFacts {
  std::string release;
  bool btf = false;
  bool kallsyms_lookup = false;    // kallsyms names kallsyms_lookup_name
  bool kprobes = false;            // kallsyms names register_kprobe
  std::optional<bool> kprobes_on;  // debugfs, which only root may read
  std::optional<std::string> lockdown;
  std::optional<std::string> module_signatures_enforced;
};

struct DeviceNodeFacts {
  mode_t mode = 0;
  std::string owner;
  std::string group;
};

struct ModuleFacts {
  std::optional<std::string> installed_path;  // below /lib/modules/RELEASE, from modules.dep
  bool loaded = false;
  std::optional<DeviceNodeFacts> device_node;
  std::optional<ModuleInfo> info;                 // what the module says of itself
  Error info_error;                               // why it does not
  std::vector<std::string> lacking_symbols = {};  // "NAME missing": functions it cannot call
};

struct NodeFacts {
  int id = 0;
  bool has_cpus = false;
  unsigned movable_blocks = 0;
  unsigned other_blocks = 0;  // online, in another zone than Movable
};

struct MemoryTierFacts {
  std::string name;
  std::vector<int> nodes;
};

struct CgroupFacts {
  bool mounted = false;
  std::string mount_point;
  std::vector<std::string> controllers;
  std::vector<std::string> subtree_control;
};

struct ChannelFacts {
  bool described = false;  // there is a file of channels
  size_t channels = 0;
  size_t made = 0;  // that are nodes
  std::vector<std::string> problems = {};
};

struct BalancerFacts {
  std::optional<std::string> numa_balancing;
  std::optional<std::string> demotion_enabled;
  std::vector<std::string> damon;           // "kdamond 0: migrate_hot", "damon_reclaim"
  std::vector<std::string> damon_watching;  // kdamonds that run, but move nothing
  std::optional<unsigned> numad_pid;
  std::optional<std::string> ksm_run;
  std::optional<std::string> transparent_hugepage;
};

struct WorkQueueFacts {
  std::string name, state, mode, type, driver_name;
};

struct DsaFacts {
  std::string name;
  std::string state;
  std::optional<std::string> iommu_domain = {};
  std::vector<WorkQueueFacts> queues = {};
};

struct DsaEngineFacts {
  bool loaded = false;                  // memsluice_dsa
  std::vector<std::string> stuck = {};  // its queues that hold what is in quarantine
  std::vector<std::string> resting = {};
};

struct RdmaFacts {
  std::string name;
  std::string driver = {};
  std::vector<std::string> ports = {};  // "1: 4: ACTIVE (Ethernet)"
};

struct CallerFacts {
  uid_t user = 0;
  bool sys_admin = false;  // in the effective set
};

struct DaemonFacts {
  std::string socket;
  std::optional<DeviceNodeFacts> socket_node = {};
  std::string version = {};  // empty: not reachable, and `problem` says why
  std::string problem = {};
  std::string advice = {};
  bool may_change = false;
};

struct Facts {
  KernelFacts kernel;
  ModuleFacts module;
  std::vector<NodeFacts> nodes;  // those with memory
  std::vector<MemoryTierFacts> tiers;
  CgroupFacts cgroup;
  ChannelFacts channels;
  BalancerFacts balancers;
  std::vector<DsaFacts> dsa;
  DsaEngineFacts dsa_engine;
  std::vector<std::string> cxl;  // memory devices and regions
  std::vector<RdmaFacts> rdma;
  CallerFacts caller;
  DaemonFacts daemon;
};

}  // namespace memsluice::doctor
