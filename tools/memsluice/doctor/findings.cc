// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/doctor/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "tools/memsluice/format.h"
#include "uapi/memsluice.h"

namespace memsluice::doctor {
namespace {

using Findings = std::vector<Finding>;

constexpr std::pair kOldestKernel = {6U, 12U};
constexpr std::array kTestedKernels = {std::pair{6U, 12U}, std::pair{7U, 3U}};
constexpr const char* kDevice = "/dev/" MEMSLUICE_DEVICE;
constexpr const char* kLogAdvice = "dmesg | grep memsluice says what it missed";

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "always [madvise] never": madvise
std::string chosen(const std::string& choices) {
  const size_t open = choices.find('[');
  const size_t close = choices.find(']', open);
  if (open == choices.npos || close == choices.npos) return choices;
  return choices.substr(open + 1, close - open - 1);
}

Finding judge_kernel(const KernelFacts& kernel) {
  std::pair<unsigned, unsigned> version;
  const int parsed =
      std::sscanf(kernel.release.c_str(), "%9u.%9u", &version.first, &version.second);
  if (parsed != 2) {
    return {"kernel", Level::kWarning, "/proc/sys/kernel/osrelease",
            fmt::format("\"{}\" is no kernel release", kernel.release), "mount /proc"};
  }
  if (version < kOldestKernel) {
    return {"kernel", Level::kError, kernel.release, "older than 6.12",
            "install a newer kernel, for instance linux-image-amd64 of Debian's backports"};
  }
  const bool tested =
      std::find(kTestedKernels.begin(), kTestedKernels.end(), version) != kTestedKernels.end();
  if (!tested) {
    return {"kernel", Level::kNote, kernel.release, "not one of the tested kernels, 6.12 and 7.3",
            "look at the finding \"features\": the module turns off what this kernel lacks"};
  }
  return {"kernel", Level::kOk, kernel.release, "supported", ""};
}

Finding judge_installed(const Facts& facts) {
  const std::string& release = facts.kernel.release;
  const std::string object = "memsluice.ko for " + release;
  if (facts.module.installed_path) {
    return {"module-installed", Level::kOk, object, *facts.module.installed_path, ""};
  }
  if (facts.module.loaded) {
    return {"module-installed", Level::kNote, object, "loaded, but not known to modprobe",
            "dkms install it, or it is gone after the next boot"};
  }
  return {"module-installed", Level::kError, object, "not built for this kernel",
          fmt::format("apt install linux-headers-{0} dkms && dkms autoinstall -k {0}", release)};
}

Finding judge_loaded(const ModuleFacts& module) {
  if (!module.loaded) {
    return {"module", Level::kError, "memsluice.ko", "not loaded",
            fmt::format("modprobe memsluice; if that fails, {}", kLogAdvice)};
  }
  if (!module.device_node) {
    return {"module", Level::kError, kDevice, "loaded, but the device node is missing",
            "mount devtmpfs on /dev, or udevadm trigger"};
  }
  if (module.info) {
    return {
        "module", Level::kOk, kDevice,
        fmt::format("loaded, version {}, ABI {}", module.info->release, module.info->abi_version),
        ""};
  }
  if (module.info_error.code == ErrorCode::kDenied) {
    return {"module", Level::kNote, kDevice, "loaded; this user may not ask it for its version",
            "run doctor as root to see more"};
  }
  return {"module", Level::kError, kDevice, module.info_error.message, module.info_error.hint};
}

void judge_features(const ModuleFacts& module, Findings* findings) {
  if (!module.info) return;
  const auto on = module.info->feature_names();
  const ModuleInfo off{.release = {}, .features = ~module.info->features};
  if (off.feature_names().empty()) {
    findings->push_back({"features", Level::kOk, kDevice, joined(on), ""});
  } else {
    const bool known = !module.lacking_symbols.empty();
    findings->push_back({"features", Level::kWarning, kDevice,
                         fmt::format("off: {}; on: {}", joined(off.feature_names()), joined(on)),
                         known ? "what this kernel lacks: " + joined(module.lacking_symbols)
                               : "dmesg | grep memsluice names what the kernel lacks"});
  }
}

Finding judge_btf(const KernelFacts& kernel) {
  const char* object = "/sys/kernel/btf/vmlinux";
  if (kernel.btf) return {"btf", Level::kOk, object, "present", ""};
  return {"btf", Level::kError, object, "missing: signatures of kernel functions cannot be checked",
          "use a kernel with CONFIG_DEBUG_INFO_BTF=y, as all of Debian's are; "
          "modprobe memsluice allow_unchecked=1 does without, at your risk"};
}

Finding judge_symbols(const KernelFacts& kernel) {
  const char* object = "/proc/kallsyms";
  if (kernel.kprobes_on == false) {
    return {"symbols", Level::kError, "/sys/kernel/debug/kprobes/enabled",
            "kprobes are switched off", "echo 1 > /sys/kernel/debug/kprobes/enabled"};
  }
  if (kernel.kprobes && kernel.kallsyms_lookup) {
    return {"symbols", Level::kOk, object, "kprobes and kallsyms_lookup_name are there", ""};
  }
  return {"symbols", Level::kError, object,
          fmt::format("{} missing: the module cannot find unexported functions",
                      kernel.kprobes ? "kallsyms_lookup_name" : "kprobes"),
          "use a kernel with CONFIG_KPROBES=y and CONFIG_KALLSYMS_ALL=y"};
}

Finding judge_lockdown(const KernelFacts& kernel) {
  const char* object = "/sys/kernel/security/lockdown";
  const std::string mode = chosen(kernel.lockdown.value_or("none"));
  const bool signed_only = kernel.module_signatures_enforced == "Y" || mode != "none";
  if (!signed_only) return {"lockdown", Level::kOk, object, mode, ""};
  return {"lockdown", Level::kWarning, object,
          fmt::format("{}: the kernel loads signed modules only", mode),
          "sign the module with an enrolled key: DKMS does once mokutil --import "
          "/var/lib/dkms/mok.pub is confirmed at boot"};
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

Finding judge_caller(const CallerFacts& caller, const DaemonFacts& daemon) {
  const std::string object = fmt::format("user {}", caller.user);
  if (daemon.may_change) return {"permissions", Level::kOk, object, "may change everything", ""};
  if (caller.sys_admin) return {"permissions", Level::kOk, object, "has CAP_SYS_ADMIN", ""};
  std::string advice = "run memsluice as root";
  if (daemon.socket_node && daemon.socket_node->group != "root") {
    advice += fmt::format(", or join the group: adduser USER {}", daemon.socket_node->group);
  }
  return {"permissions", Level::kNote, object, "may look, but not change anything", advice};
}

void judge_device_node(const ModuleFacts& module, Findings* findings) {
  if (!module.device_node) return;
  const DeviceNodeFacts& node = *module.device_node;
  const std::string found = fmt::format("{:04o} {}:{}", node.mode, node.owner, node.group);
  const bool open_to_all = (node.mode & 0002) != 0;
  findings->push_back({"device-node", open_to_all ? Level::kNote : Level::kOk, kDevice, found,
                       open_to_all ? "every user may ask for migrations of his own processes; "
                                     "chmod 0660 keeps it to the group"
                                   : ""});
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

std::string describe(const WorkQueueFacts& queue) {
  if (queue.state != "enabled") return queue.name + " " + queue.state;
  return fmt::format("{} {} {} {}", queue.name, queue.mode, queue.type, queue.driver_name);
}

void judge_dsa(const Facts& facts, Findings* findings) {
  if (facts.dsa.empty()) {
    findings->push_back(
        {"dsa", Level::kNote, "/sys/bus/dsa/devices", "no DSA device: the CPU copies pages", ""});
  }
  for (const DsaFacts& device : facts.dsa) {
    std::vector<std::string> parts = {device.state};
    for (const WorkQueueFacts& queue : device.queues) parts.push_back(describe(queue));
    const bool enabled = device.state == "enabled";
    findings->push_back({"dsa", enabled ? Level::kOk : Level::kNote, device.name, joined(parts),
                         enabled ? "" : "accel-config config-engine, config-wq and enable-device"});
    const std::string domain = device.iommu_domain.value_or("none");
    const bool direct = domain == "none" || domain == "identity";
    findings->push_back(
        {"iommu", direct ? Level::kOk : Level::kWarning, device.name,
         direct ? domain + ": addresses are physical" : domain + ": addresses are translated",
         direct ? "" : "boot with iommu=pt: copies by physical address need a passthrough domain"});
  }
}

void judge_cxl(const Facts& facts, Findings* findings) {
  findings->push_back({"cxl", Level::kOk, "/sys/bus/cxl/devices",
                       facts.cxl.empty() ? "no CXL memory" : joined(facts.cxl), ""});
}

void judge_rdma(const Facts& facts, Findings* findings) {
  if (facts.rdma.empty()) {
    findings->push_back({"rdma", Level::kOk, "/sys/class/infiniband", "no RDMA device", ""});
  }
  for (const RdmaFacts& device : facts.rdma) {
    std::vector<std::string> parts = {device.driver};
    parts.insert(parts.end(), device.ports.begin(), device.ports.end());
    findings->push_back({"rdma", Level::kOk, device.name, joined(parts), ""});
  }
}

Finding judge_daemon(const DaemonFacts& daemon, std::string_view version) {
  if (daemon.version.empty()) {
    return {"daemon", Level::kError, daemon.socket, daemon.problem, daemon.advice};
  }
  if (daemon.version != version) {
    return {"daemon", Level::kWarning, daemon.socket,
            fmt::format("memsluiced {}, but this command is {}", daemon.version, version),
            "install the same version of both, and systemctl restart memsluiced"};
  }
  return {"daemon", Level::kOk, daemon.socket, "memsluiced " + daemon.version, ""};
}

}  // namespace

std::string_view level_name(Level level) {
  static constexpr std::array<std::string_view, 4> kNames = {"ok", "note", "warning", "error"};
  return kNames[static_cast<size_t>(level)];
}

std::vector<Finding> judge(const Facts& facts, std::string_view version) {
  Findings findings = {judge_kernel(facts.kernel),  judge_btf(facts.kernel),
                       judge_symbols(facts.kernel), judge_lockdown(facts.kernel),
                       judge_installed(facts),      judge_loaded(facts.module)};
  judge_features(facts.module, &findings);
  judge_device_node(facts.module, &findings);
  findings.push_back(judge_daemon(facts.daemon, version));
  findings.push_back(judge_caller(facts.caller, facts.daemon));
  findings.push_back(judge_cgroup(facts.cgroup));
  findings.push_back(judge_nodes(facts));
  findings.push_back(judge_tiers(facts));
  judge_zones(facts, &findings);
  judge_numa_balancing(facts.balancers, &findings);
  judge_demotion(facts.balancers, &findings);
  judge_damon(facts.balancers, &findings);
  findings.push_back(judge_numad(facts.balancers));
  findings.push_back(judge_ksm(facts.balancers));
  judge_transparent_hugepage(facts.balancers, &findings);
  judge_dsa(facts, &findings);
  judge_cxl(facts, &findings);
  judge_rdma(facts, &findings);
  return findings;
}

bool any_error(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.level == Level::kError; });
}

Json to_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"id", finding.id},
                    {"level", level_name(finding.level)},
                    {"object", finding.object},
                    {"found", finding.found},
                    {"advice", finding.advice}});
  }
  return {{"findings", std::move(list)}};
}

std::string to_text(const std::vector<Finding>& findings) {
  std::string result;
  size_t counts[4] = {};
  for (const Finding& finding : findings) {
    ++counts[static_cast<size_t>(finding.level)];
    result += fmt::format("{:<8} {:<17} {}: {}\n", level_name(finding.level), finding.id,
                          printable(finding.object), printable(finding.found));
    if (!finding.advice.empty()) {
      result += fmt::format("{:<26} -> {}\n", "", printable(finding.advice));
    }
  }
  result += fmt::format("{} errors, {} warnings, {} notes\n", counts[3], counts[2], counts[1]);
  return result;
}

}  // namespace memsluice::doctor
