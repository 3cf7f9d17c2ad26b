// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/doctor/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "daemon/host/channels_file.h"

namespace memsluice::doctor {
namespace {

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Finding judge_cgroup(const CgroupFacts& cgroup) {
  if (!cgroup.mounted) {
    return {"cgroup", Level::kError, "/proc/self/mounts", "no cgroup v2: there can be no tenant",
            "boot with systemd.unified_cgroup_hierarchy=1"};
  }
  for (const char* controller : {"memory", "cpuset"}) {
    if (contains(cgroup.controllers, controller)) continue;
    return {"cgroup", Level::kError, cgroup.mount_point + "/cgroup.controllers",
            fmt::format("controller {} is not there", controller),
            "take it from cgroup v1 (boot with cgroup_no_v1=all), and no cgroup_disable= on the "
            "kernel command line"};
  }
  if (!contains(cgroup.subtree_control, "memory")) {
    return {"cgroup", Level::kWarning, cgroup.mount_point + "/cgroup.subtree_control",
            "controller memory is not handed to the cgroups below: pages are charged to no tenant",
            fmt::format("echo +memory > {}/cgroup.subtree_control", cgroup.mount_point)};
  }
  return {"cgroup", Level::kOk, cgroup.mount_point, "cgroup v2 with memory and cpuset", ""};
}

Finding judge_nodes(const Facts& facts) {
  const char* object = "/sys/devices/system/node";
  std::vector<std::string> ids;
  for (const NodeFacts& node : facts.nodes) {
    ids.push_back(fmt::format("{}{}", node.id, node.has_cpus ? "" : " (no CPUs)"));
  }
  if (facts.nodes.size() > 1) {
    return {"nodes", Level::kOk, object, "memory on nodes " + joined(ids), ""};
  }
  return {"nodes", Level::kWarning, object,
          facts.nodes.empty() ? "no node with memory" : "all memory is on node " + joined(ids),
          "there is nothing to move between; online the slow memory: cxl list, "
          "daxctl reconfigure-device --mode=system-ram"};
}

Finding judge_tiers(const Facts& facts) {
  std::vector<std::string> found;
  size_t used = 0;
  for (const MemoryTierFacts& tier : facts.tiers) {
    if (tier.nodes.empty()) continue;
    ++used;
    found.push_back(fmt::format("{}: {}", tier.name, fmt::join(tier.nodes, ",")));
  }
  const char* object = "/sys/devices/virtual/memory_tiering";
  if (used > 1 || facts.nodes.size() < 2) {
    return {"tiers", Level::kOk, object, found.empty() ? "none" : joined(found), ""};
  }
  return {"tiers", Level::kWarning, object,
          found.empty() ? "the kernel has no memory tiers" : "one tier for all: " + joined(found),
          "the firmware has to tell latency and bandwidth of the nodes (ACPI HMAT beside SRAT; "
          "in QEMU -machine hmat=on with -numa hmat-lb); look for an update or a setting of it"};
}

void judge_zones(const Facts& facts, Findings* findings) {
  for (const NodeFacts& node : facts.nodes) {
    const unsigned blocks = node.movable_blocks + node.other_blocks;
    if (node.has_cpus || blocks == 0) continue;
    const std::string object = fmt::format("/sys/devices/system/node/node{}", node.id);
    const std::string found =
        fmt::format("{} of {} memory blocks are movable", node.movable_blocks, blocks);
    if (node.other_blocks == 0) {
      findings->push_back({"movable", Level::kOk, object, found, ""});
    } else {
      findings->push_back(
          {"movable", Level::kNote, object, found + "; the kernel may put its own data there",
           "boot with memhp_default_state=online_movable, or daxctl online-memory --movable, "
           "if this memory is to be removed later"});
    }
  }
}

void judge_numa_balancing(const BalancerFacts& balancers, Findings* findings) {
  if (!balancers.numa_balancing) return;
  const std::string& mode = *balancers.numa_balancing;
  const bool off = mode == "0";
  findings->push_back(
      {"numa-balancing", off ? Level::kOk : Level::kWarning, "kernel.numa_balancing",
       off ? "off" : "on, mode " + mode + ": the kernel moves pages between nodes too",
       off ? "" : "sysctl kernel.numa_balancing=0"});
}

void judge_demotion(const BalancerFacts& balancers, Findings* findings) {
  if (!balancers.demotion_enabled) return;
  const bool on = *balancers.demotion_enabled == "true" || *balancers.demotion_enabled == "1";
  findings->push_back(
      {"demotion", on ? Level::kNote : Level::kOk, "/sys/kernel/mm/numa/demotion_enabled",
       on ? "on: under pressure, reclaim demotes pages of any tenant by its own choice" : "off",
       on ? "echo false > /sys/kernel/mm/numa/demotion_enabled, unless it is wanted as a last "
            "resort"
          : ""});
}

void judge_damon(const BalancerFacts& balancers, Findings* findings) {
  const char* object = "/sys/kernel/mm/damon";
  if (!balancers.damon.empty()) {
    findings->push_back({"damon", Level::kWarning, object,
                         "moves pages too: " + joined(balancers.damon),
                         "stop it: echo off > /sys/kernel/mm/damon/admin/kdamonds/N/state, or "
                         "echo N > /sys/module/MODULE/parameters/enabled"});
  } else if (!balancers.damon_watching.empty()) {
    findings->push_back({"damon", Level::kNote, object,
                         joined(balancers.damon_watching) + " clears accessed bits",
                         "stop it if hot pages look cold"});
  } else {
    findings->push_back({"damon", Level::kOk, object, "no scheme is active", ""});
  }
}

void judge_channels(const ChannelFacts& channels, Findings* findings) {
  if (!channels.described) return;
  for (const std::string& problem : channels.problems)
    findings->push_back({"channels", Level::kError, kDefaultChannelsPath, problem,
                         "memsluice provision shows what there is"});
  if (channels.problems.empty())
    findings->push_back(
        {"channels", Level::kOk, kDefaultChannelsPath,
         fmt::format("{} of {} channels are nodes", channels.made, channels.channels), ""});
}

Finding judge_numad(const BalancerFacts& balancers) {
  if (!balancers.numad_pid) return {"numad", Level::kOk, "numad", "not running", ""};
  return {"numad", Level::kWarning, fmt::format("process {}", *balancers.numad_pid),
          "numad moves processes and their pages between nodes", "systemctl disable --now numad"};
}

Finding judge_ksm(const BalancerFacts& balancers) {
  const char* object = "/sys/kernel/mm/ksm/run";
  if (balancers.ksm_run.value_or("0") != "1") return {"ksm", Level::kOk, object, "off", ""};
  return {"ksm", Level::kNote, object,
          "on: merged pages are shared, and are moved only with --all-mappings",
          "echo 2 > /sys/kernel/mm/ksm/run unmerges them all"};
}

void judge_transparent_hugepage(const BalancerFacts& balancers, Findings* findings) {
  if (!balancers.transparent_hugepage) return;
  const std::string mode = chosen(*balancers.transparent_hugepage);
  const bool never = mode == "never";
  findings->push_back(
      {"thp", never ? Level::kNote : Level::kOk, "/sys/kernel/mm/transparent_hugepage/enabled",
       mode, never ? "echo madvise > it: moving 2 MiB pages costs far less per byte" : ""});
}

}  // namespace

void judge_memory(const Facts& facts, Findings* findings) {
  findings->push_back(judge_cgroup(facts.cgroup));
  findings->push_back(judge_nodes(facts));
  findings->push_back(judge_tiers(facts));
  judge_zones(facts, findings);
  judge_channels(facts.channels, findings);
  judge_numa_balancing(facts.balancers, findings);
  judge_demotion(facts.balancers, findings);
  judge_damon(facts.balancers, findings);
  findings->push_back(judge_numad(facts.balancers));
  findings->push_back(judge_ksm(facts.balancers));
  judge_transparent_hugepage(facts.balancers, findings);
}

}  // namespace memsluice::doctor
