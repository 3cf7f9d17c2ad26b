// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/doctor/gather.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <iterator>
#include <sstream>

#include "daemon/base/units.h"
#include "daemon/host/files.h"
#include "daemon/host/paths.h"
#include "tools/memsluice/provision/gather.h"

namespace memsluice::doctor {
namespace {

constexpr const char* kMemoryBlocks = "/sys/devices/system/memory";
constexpr const char* kDamon = "/sys/kernel/mm/damon/admin/kdamonds";
constexpr const char* kDsaDevices = "/sys/bus/dsa/devices";
constexpr const char* kCxlDevices = "/sys/bus/cxl/devices";
constexpr const char* kRdmaDevices = "/sys/class/infiniband";

std::vector<std::string> words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  return {std::istream_iterator<std::string>(stream), {}};
}

// "name12" with prefix "name": 12.
std::optional<unsigned> id_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto id = parse_number(name.substr(prefix.size()), 0, UINT32_MAX);
  if (!id.ok()) return std::nullopt;
  return static_cast<unsigned>(*id);
}

std::string read_or(const HostFiles& host, const std::string& path, const char* otherwise = "") {
  return host.read(path).value_or(otherwise);
}

KernelFacts gather_kernel(const HostFiles& host) {
  KernelFacts kernel;
  kernel.release = read_or(host, "/proc/sys/kernel/osrelease");
  kernel.btf = host.exists("/sys/kernel/btf/vmlinux");
  host.each_line("/proc/kallsyms", [&](std::string_view line) {
    kernel.kallsyms_lookup |= line.ends_with(" kallsyms_lookup_name");
    kernel.kprobes |= line.ends_with(" register_kprobe");
    return !kernel.kallsyms_lookup || !kernel.kprobes;
  });
  if (const auto on = host.read("/sys/kernel/debug/kprobes/enabled"))
    kernel.kprobes_on = *on != "0";
  kernel.lockdown = host.read("/sys/kernel/security/lockdown");
  kernel.module_signatures_enforced = host.read("/sys/module/module/parameters/sig_enforce");
  return kernel;
}

// "updates/dkms/memsluice.ko.xz: DEPENDENCIES"
std::optional<std::string> installed_module(const HostFiles& host, const std::string& release) {
  std::optional<std::string> found;
  host.each_line(fmt::format("/lib/modules/{}/modules.dep", release), [&](std::string_view line) {
    const std::string_view path = line.substr(0, line.find(':'));
    const std::string_view file = path.substr(path.rfind('/') + 1);
    if (file.starts_with("memsluice.ko")) found = path;
    return !found;
  });
  return found;
}

// Of /proc/memsluice/status, where a line is "symbol NAME STATE".
std::vector<std::string> lacking_symbols(const HostFiles& host) {
  std::vector<std::string> symbols;
  host.each_line("/proc/memsluice/status", [&](std::string_view line) {
    const auto fields = words(line);
    const bool lacking = fields.size() == 3 && fields[0] == "symbol" &&
                         (fields[2] == "missing" || fields[2] == "mismatch");
    if (lacking) symbols.push_back(fields[1] + " " + fields[2]);
    return true;
  });
  return symbols;
}

ModuleFacts gather_module(const HostFiles& host, const std::string& release) {
  ModuleFacts module;
  module.installed_path = installed_module(host, release);
  module.loaded = host.exists("/sys/module/memsluice");
  const std::string device = host.host_path(Paths().device);
  module.device_node = stat_node(device);
  module.lacking_symbols = lacking_symbols(host);
  auto info = open_kernel_module(device)->info();
  if (info.ok()) {
    module.info = *info;
  } else {
    module.info_error = info.error();
  }
  return module;
}

void count_blocks(const HostFiles& host, const std::string& node_path, NodeFacts& node) {
  for (const std::string& entry : host.list(node_path)) {
    const auto block = id_after(entry, "memory");
    if (!block) continue;
    const std::string path = fmt::format("{}/memory{}", kMemoryBlocks, *block);
    if (read_or(host, path + "/state") != "online") continue;
    const auto zones = words(read_or(host, path + "/valid_zones"));
    const bool movable = !zones.empty() && zones.front() == "Movable";
    ++(movable ? node.movable_blocks : node.other_blocks);
  }
}

std::vector<NodeFacts> gather_nodes(const HostFiles& host) {
  const std::string directory = Paths().nodes;
  std::vector<NodeFacts> nodes;
  for (const int id : parse_id_list(read_or(host, directory + "/has_memory"))) {
    const std::string path = fmt::format("{}/node{}", directory, id);
    NodeFacts node{.id = id};
    node.has_cpus = !parse_id_list(read_or(host, path + "/cpulist")).empty();
    count_blocks(host, path, node);
    nodes.push_back(node);
  }
  return nodes;
}

std::vector<MemoryTierFacts> gather_tiers(const HostFiles& host) {
  const std::string directory = Paths().memory_tiers;
  std::vector<MemoryTierFacts> tiers;
  for (const std::string& name : host.list(directory)) {
    if (!id_after(name, "memory_tier")) continue;
    tiers.push_back({name, parse_id_list(read_or(host, directory + "/" + name + "/nodelist"))});
  }
  return tiers;
}

ChannelFacts gather_channels(const HostFiles& host) {
  const auto text = host.read(kDefaultChannelsPath);
  if (!text) return {};
  LoadedChannels loaded = parse_channels_file(*text, kDefaultChannelsPath);
  const HostMemory memory = provision::gather_evidence(host).host_memory();
  ChannelFacts channels{.described = true, .channels = loaded.file.channels.size()};
  if (loaded.problems.empty()) loaded.problems = check_channels(loaded.file, memory);
  for (const ConfigProblem& problem : loaded.problems)
    channels.problems.push_back(problem.describe());
  for (const ChannelDefinition& channel : loaded.file.channels)
    if (is_made(channel, memory)) ++channels.made;
  return channels;
}

CgroupFacts gather_cgroup(const HostFiles& host) {
  CgroupFacts cgroup;
  cgroup.mount_point = cgroup2_mount(read_or(host, "/proc/self/mounts"));
  cgroup.mounted = !cgroup.mount_point.empty();
  cgroup.controllers = words(read_or(host, cgroup.mount_point + "/cgroup.controllers"));
  cgroup.subtree_control = words(read_or(host, cgroup.mount_point + "/cgroup.subtree_control"));
  return cgroup;
}

// The actions that move or take away pages, as memsluice does.
bool moves_pages(std::string_view action) {
  return action.starts_with("migrate") || action == "pageout" || action == "cold" ||
         action == "lru_prio" || action == "lru_deprio";
}

std::vector<std::string> damon_actions(const HostFiles& host, const std::string& kdamond) {
  std::vector<std::string> actions;
  const std::string contexts = kdamond + "/contexts";
  for (const std::string& context : host.list(contexts)) {
    const std::string schemes = fmt::format("{}/{}/schemes", contexts, context);
    for (const std::string& scheme : host.list(schemes)) {
      const auto action = host.read(fmt::format("{}/{}/action", schemes, scheme));
      if (action && moves_pages(*action)) actions.push_back(*action);
    }
  }
  return actions;
}

void gather_damon(const HostFiles& host, BalancerFacts& balancers) {
  for (const std::string& kdamond : host.list(kDamon)) {
    const std::string path = fmt::format("{}/{}", kDamon, kdamond);
    if (read_or(host, path + "/state") != "on") continue;
    const auto actions = damon_actions(host, path);
    if (actions.empty()) balancers.damon_watching.push_back("kdamond " + kdamond);
    for (const std::string& action : actions) {
      balancers.damon.push_back(fmt::format("kdamond {}: {}", kdamond, action));
    }
  }
  for (const char* module : {"damon_reclaim", "damon_lru_sort"}) {
    if (read_or(host, fmt::format("/sys/module/{}/parameters/enabled", module)) == "Y") {
      balancers.damon.emplace_back(module);
    }
  }
}

std::optional<unsigned> process_named(const HostFiles& host, std::string_view name) {
  for (const std::string& entry : host.list("/proc")) {
    const auto pid = id_after(entry, "");
    if (pid && host.read(fmt::format("/proc/{}/comm", *pid)) == name) return pid;
  }
  return std::nullopt;
}

BalancerFacts gather_balancers(const HostFiles& host) {
  BalancerFacts balancers;
  balancers.numa_balancing = host.read("/proc/sys/kernel/numa_balancing");
  balancers.demotion_enabled = host.read("/sys/kernel/mm/numa/demotion_enabled");
  gather_damon(host, balancers);
  balancers.numad_pid = process_named(host, "numad");
  balancers.ksm_run = host.read("/sys/kernel/mm/ksm/run");
  balancers.transparent_hugepage = host.read("/sys/kernel/mm/transparent_hugepage/enabled");
  return balancers;
}

std::vector<DsaFacts> gather_dsa(const HostFiles& host) {
  std::vector<DsaFacts> devices;
  for (const std::string& name : host.list(kDsaDevices)) {
    const auto id = id_after(name, "dsa");
    if (!id) continue;
    const std::string path = fmt::format("{}/{}", kDsaDevices, name);
    DsaFacts device{.name = name, .state = read_or(host, path + "/state", "unknown")};
    // The parent of the device in sysfs is the PCI function.
    device.iommu_domain = host.read(path + "/../iommu_group/type");
    for (const std::string& queue : host.list(path)) {
      if (!queue.starts_with(fmt::format("wq{}.", *id))) continue;
      const auto attribute = [&](const char* file) {
        return read_or(host, fmt::format("{}/{}/{}", path, queue, file));
      };
      device.queues.push_back({queue, attribute("state"), attribute("mode"), attribute("type"),
                               attribute("driver_name")});
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

DsaEngineFacts gather_dsa_engine(const HostFiles& host) {
  DsaEngineFacts facts{.loaded = host.exists("/sys/module/memsluice_dsa")};
  const auto engines = open_kernel_module(host.host_path(Paths().device))->engines();
  if (!engines.ok()) return facts;
  for (const EngineInfo& engine : *engines) {
    for (const memsluice_engine_queue& queue : engine.queues) {
      if (queue.state == MEMSLUICE_QUEUE_STUCK) facts.stuck.push_back(engine_name(queue.name));
      if (queue.state == MEMSLUICE_QUEUE_RESTING) facts.resting.push_back(engine_name(queue.name));
    }
  }
  return facts;
}

std::vector<std::string> gather_cxl(const HostFiles& host) {
  std::vector<std::string> devices;
  for (const std::string& name : host.list(kCxlDevices)) {
    if (id_after(name, "mem") || id_after(name, "region")) devices.push_back(name);
  }
  return devices;
}

std::vector<RdmaFacts> gather_rdma(const HostFiles& host) {
  std::vector<RdmaFacts> devices;
  for (const std::string& name : host.list(kRdmaDevices)) {
    const std::string path = fmt::format("{}/{}", kRdmaDevices, name);
    RdmaFacts device{.name = name};
    // A software device (rxe, siw) has no driver link.
    device.driver = host.link_name(path + "/device/driver").value_or("software");
    for (const std::string& port : host.list(path + "/ports")) {
      const std::string port_path = fmt::format("{}/ports/{}", path, port);
      device.ports.push_back(fmt::format("port {} {} ({})", port,
                                         read_or(host, port_path + "/state", "unknown"),
                                         read_or(host, port_path + "/link_layer", "unknown")));
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

CallerFacts gather_caller(const HostFiles& host) {
  CallerFacts caller{.user = geteuid()};
  host.each_line("/proc/self/status", [&](std::string_view line) {
    if (!line.starts_with("CapEff:")) return true;
    line.remove_prefix(line.find_first_not_of("\t ", 7));
    uint64_t effective = 0;
    std::from_chars(line.data(), line.data() + line.size(), effective, 16);
    caller.sys_admin = (effective >> CAP_SYS_ADMIN) & 1;
    return false;
  });
  return caller;
}

}  // namespace

std::optional<DeviceNodeFacts> stat_node(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  const passwd* owner = getpwuid(status.st_uid);
  const group* group_entry = getgrgid(status.st_gid);
  return DeviceNodeFacts{
      .mode = status.st_mode & 07777,
      .owner = owner ? owner->pw_name : std::to_string(status.st_uid),
      .group = group_entry ? group_entry->gr_name : std::to_string(status.st_gid)};
}

Facts gather(const HostFiles& host) {
  Facts facts;
  facts.kernel = gather_kernel(host);
  facts.module = gather_module(host, facts.kernel.release);
  facts.nodes = gather_nodes(host);
  facts.tiers = gather_tiers(host);
  facts.channels = gather_channels(host);
  facts.cgroup = gather_cgroup(host);
  facts.balancers = gather_balancers(host);
  facts.dsa = gather_dsa(host);
  facts.dsa_engine = gather_dsa_engine(host);
  facts.cxl = gather_cxl(host);
  facts.rdma = gather_rdma(host);
  facts.caller = gather_caller(host);
  return facts;
}

}  // namespace memsluice::doctor
