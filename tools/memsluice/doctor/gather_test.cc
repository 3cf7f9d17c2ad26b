// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/doctor/gather.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "daemon/base/temporary_directory.h"

namespace memsluice::doctor {
namespace {

class Gather : public testing::Test {
 protected:
  Facts facts() const { return gather(HostFiles(host_.path())); }
  void link(const char* target, const std::string& path) const {
    std::filesystem::create_directories(std::filesystem::path(host_.path(path)).parent_path());
    std::filesystem::create_symlink(target, host_.path(path));
  }

  TemporaryDirectory host_;
};

TEST_F(Gather, AnEmptyHostSaysNothing) {
  const Facts nothing = facts();
  EXPECT_EQ(nothing.kernel.release, "");
  EXPECT_FALSE(nothing.kernel.btf);
  EXPECT_FALSE(nothing.kernel.lockdown.has_value());
  EXPECT_FALSE(nothing.module.loaded);
  EXPECT_FALSE(nothing.module.info.has_value());
  EXPECT_TRUE(nothing.nodes.empty());
  EXPECT_FALSE(nothing.cgroup.mounted);
  EXPECT_FALSE(nothing.balancers.numad_pid.has_value());
  EXPECT_FALSE(nothing.caller.sys_admin);
}

TEST_F(Gather, Kernel) {
  host_.write("/proc/sys/kernel/osrelease", "6.12.95+deb13-amd64\n");
  host_.write("/proc/kallsyms",
              "0000000000000000 T __pfx_register_kprobe\n"
              "0000000000000000 T register_kprobe\n"
              "0000000000000000 T kallsyms_lookup_name\t[x]\n");
  host_.write("/sys/kernel/btf/vmlinux", "");
  host_.write("/sys/kernel/debug/kprobes/enabled", "0\n");
  host_.write("/sys/kernel/security/lockdown", "[none] integrity\n");
  const KernelFacts kernel = facts().kernel;
  EXPECT_EQ(kernel.release, "6.12.95+deb13-amd64");
  EXPECT_TRUE(kernel.btf);
  EXPECT_TRUE(kernel.kprobes);
  EXPECT_FALSE(kernel.kallsyms_lookup) << "that of a module does not count";
  EXPECT_EQ(kernel.kprobes_on, false);
  EXPECT_EQ(kernel.lockdown, "[none] integrity");
}

TEST_F(Gather, Module) {
  host_.write("/proc/sys/kernel/osrelease", "6.12.95\n");
  host_.write("/lib/modules/6.12.95/modules.dep",
              "kernel/mm/zsmalloc.ko.xz:\n"
              "updates/dkms/memsluice_dsa.ko.xz: updates/dkms/memsluice.ko.xz\n"
              "updates/dkms/memsluice.ko.xz:\n");
  host_.make_directory("/sys/module/memsluice");
  host_.write("/dev/memsluice", "no device");
  host_.write("/proc/memsluice/status",
              "release 0.1.0\n"
              "symbol migrate_pages bound\n"
              "symbol folio_referenced mismatch\n"
              "symbol isolate_lru_page missing\n");
  const ModuleFacts module = facts().module;
  EXPECT_EQ(module.lacking_symbols,
            (std::vector<std::string>{"folio_referenced mismatch", "isolate_lru_page missing"}));
  EXPECT_EQ(module.installed_path, "updates/dkms/memsluice.ko.xz");
  EXPECT_TRUE(module.loaded);
  ASSERT_TRUE(module.device_node.has_value());
  EXPECT_EQ(module.device_node->mode & 0700U, 0600U);
  EXPECT_FALSE(module.info.has_value());
  EXPECT_EQ(module.info_error.code, ErrorCode::kUnavailable);
}

TEST_F(Gather, NodesAndTheZonesOfTheirMemory) {
  host_.write("/sys/devices/system/node/has_memory", "0-1\n");
  host_.write("/sys/devices/system/node/node0/cpulist", "0-1\n");
  host_.write("/sys/devices/system/node/node1/cpulist", "\n");
  for (const char* block : {"memory32", "memory33", "memory34", "memory35"}) {
    const std::string path = std::string("/sys/devices/system/memory/") + block;
    host_.make_directory(std::string("/sys/devices/system/node/node1/") + block);
    host_.write(path + "/state", "online\n");
    host_.write(path + "/valid_zones", "Movable\n");
  }
  host_.write("/sys/devices/system/memory/memory34/valid_zones", "Normal\n");
  host_.write("/sys/devices/system/memory/memory35/state", "offline\n");
  host_.write("/sys/devices/system/node/node1/memory_side_cache", "");

  const auto nodes = facts().nodes;
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_TRUE(nodes[0].has_cpus);
  EXPECT_FALSE(nodes[1].has_cpus);
  EXPECT_EQ(nodes[1].movable_blocks, 2U);
  EXPECT_EQ(nodes[1].other_blocks, 1U);
}

TEST_F(Gather, ChannelsAndWhatIsWrongWithThem) {
  EXPECT_FALSE(facts().channels.described);
  const std::string nodes = "/sys/devices/system/node";
  host_.write(nodes + "/possible", "0-1\n");
  host_.write(nodes + "/online", "0\n");
  host_.make_directory(nodes + "/node0/memory0");
  const std::string file = "/etc/memsluice/channels.toml";
  const std::string group = "[[group]]\nname = \"dram\"\n";
  host_.write(file, group + "[[channel]]\nname = \"a\"\ngroup = \"dram\"\nnode = 0\n");
  EXPECT_TRUE(facts().channels.problems.empty());
  EXPECT_EQ(facts().channels.made, 1U);
  host_.write(file, group + "[[channel]]\nname = \"a\"\ngroup = \"dram\"\nnode = 1\n");
  EXPECT_EQ(facts().channels.made, 0U);
  ASSERT_EQ(facts().channels.problems.size(), 1U);
  EXPECT_NE(facts().channels.problems[0].find("1 of a has no memory"), std::string::npos);
  host_.write(file, "[[channel]]\n");
  EXPECT_EQ(facts().channels.problems.size(), 3U);
}

TEST_F(Gather, Tiers) {
  host_.write("/sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0\n");
  host_.write("/sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "1-2\n");
  host_.write("/sys/devices/virtual/memory_tiering/uevent", "");
  const auto tiers = facts().tiers;
  ASSERT_EQ(tiers.size(), 2U);
  EXPECT_EQ(tiers[0].name, "memory_tier22");
  EXPECT_EQ(tiers[0].nodes, (std::vector<int>{1, 2}));
}

TEST_F(Gather, Cgroup) {
  host_.write("/proc/self/mounts",
              "proc /proc proc rw 0 0\n"
              "cgroup2 /cg cgroup2 rw,nosuid 0 0\n");
  host_.write("/cg/cgroup.controllers", "cpuset cpu memory\n");
  host_.write("/cg/cgroup.subtree_control", "memory\n");
  const CgroupFacts cgroup = facts().cgroup;
  EXPECT_TRUE(cgroup.mounted);
  EXPECT_EQ(cgroup.mount_point, "/cg");
  EXPECT_EQ(cgroup.controllers, (std::vector<std::string>{"cpuset", "cpu", "memory"}));
  EXPECT_EQ(cgroup.subtree_control, std::vector<std::string>{"memory"});
}

TEST_F(Gather, Balancers) {
  host_.write("/proc/sys/kernel/numa_balancing", "2\n");
  host_.write("/sys/kernel/mm/numa/demotion_enabled", "true\n");
  host_.write("/sys/kernel/mm/ksm/run", "1\n");
  host_.write("/proc/1/comm", "systemd\n");
  host_.write("/proc/77/comm", "numad\n");
  const std::string kdamonds = "/sys/kernel/mm/damon/admin/kdamonds";
  host_.write(kdamonds + "/nr_kdamonds", "3\n");
  host_.write(kdamonds + "/0/state", "on\n");
  host_.write(kdamonds + "/0/contexts/0/schemes/0/action", "migrate_cold\n");
  host_.write(kdamonds + "/0/contexts/0/schemes/1/action", "stat\n");
  host_.write(kdamonds + "/1/state", "off\n");
  host_.write(kdamonds + "/1/contexts/0/schemes/0/action", "pageout\n");
  host_.write(kdamonds + "/2/state", "on\n");
  host_.write("/sys/module/damon_reclaim/parameters/enabled", "Y\n");
  const BalancerFacts balancers = facts().balancers;
  EXPECT_EQ(balancers.numa_balancing, "2");
  EXPECT_EQ(balancers.demotion_enabled, "true");
  EXPECT_EQ(balancers.ksm_run, "1");
  EXPECT_EQ(balancers.numad_pid, 77U);
  EXPECT_EQ(balancers.damon,
            (std::vector<std::string>{"kdamond 0: migrate_cold", "damon_reclaim"}));
  EXPECT_EQ(balancers.damon_watching, std::vector<std::string>{"kdamond 2"});
}

TEST_F(Gather, DsaDevicesThroughTheirLinks) {
  const std::string function = "/sys/devices/pci0000:6a/0000:6a:01.0";
  host_.make_directory("/sys/module/memsluice_dsa");
  host_.write(function + "/iommu_group/type", "identity\n");
  host_.write(function + "/dsa0/state", "enabled\n");
  host_.write(function + "/dsa0/wq0.0/state", "enabled\n");
  host_.write(function + "/dsa0/wq0.0/mode", "dedicated\n");
  host_.write(function + "/dsa0/wq0.0/type", "kernel\n");
  host_.write(function + "/dsa0/wq0.0/driver_name", "memsluice\n");
  link("../../../devices/pci0000:6a/0000:6a:01.0/dsa0", "/sys/bus/dsa/devices/dsa0");
  link("../../../devices/pci0000:6a/0000:6a:01.0/dsa0/wq0.0", "/sys/bus/dsa/devices/wq0.0");
  EXPECT_TRUE(facts().dsa_engine.loaded);
  const auto devices = facts().dsa;
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].name, "dsa0");
  EXPECT_EQ(devices[0].state, "enabled");
  EXPECT_EQ(devices[0].iommu_domain, "identity");
  ASSERT_EQ(devices[0].queues.size(), 1U);
  EXPECT_EQ(devices[0].queues[0].driver_name, "memsluice");
}

TEST_F(Gather, CxlAndRdmaDevices) {
  for (const char* name : {"mem0", "region0", "port1", "decoder0.0", "memdev"}) {
    host_.make_directory(std::string("/sys/bus/cxl/devices/") + name);
  }
  host_.write("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  host_.write("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
  link("../../../bus/pci/drivers/mlx5_core", "/sys/class/infiniband/mlx5_0/device/driver");
  host_.make_directory("/sys/class/infiniband/rxe0");
  const Facts found = facts();
  EXPECT_EQ(found.cxl, (std::vector<std::string>{"mem0", "region0"}));
  ASSERT_EQ(found.rdma.size(), 2U);
  EXPECT_EQ(found.rdma[0].driver, "mlx5_core");
  EXPECT_EQ(found.rdma[0].ports, std::vector<std::string>{"port 1 4: ACTIVE (Ethernet)"});
  EXPECT_EQ(found.rdma[1].driver, "software");
}

TEST_F(Gather, Capabilities) {
  host_.write("/proc/self/status", "Name:\tx\nCapEff:\t0000000000200000\n");
  EXPECT_TRUE(facts().caller.sys_admin);
  host_.write("/proc/self/status", "CapEff:\t000001ffffdfffff\n");
  EXPECT_FALSE(facts().caller.sys_admin);
}

TEST_F(Gather, SurvivesNonsense) {
  for (const char* path :
       {"/proc/sys/kernel/osrelease", "/proc/self/status", "/proc/self/mounts",
        "/sys/devices/system/node/has_memory", "/sys/bus/dsa/devices", "/proc/kallsyms"}) {
    host_.write(path, std::string("\0\xff,-9999999999999:\n \n\n", 19));
  }
  EXPECT_TRUE(facts().nodes.empty());
}

}  // namespace
}  // namespace memsluice::doctor
