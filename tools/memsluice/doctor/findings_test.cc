// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/doctor/findings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>

namespace memsluice::doctor {

std::ostream& operator<<(std::ostream& out, Level level) {
  return out << level_name(level);
}

namespace {

constexpr uint64_t kAllFeatures = ~uint64_t{0};

Facts healthy() {
  Facts facts;
  facts.kernel = {.release = "6.12.95+deb13-amd64",
                  .btf = true,
                  .kallsyms_lookup = true,
                  .kprobes = true,
                  .kprobes_on = true,
                  .lockdown = "[none] integrity confidentiality",
                  .module_signatures_enforced = "N"};
  facts.module.installed_path = "updates/dkms/memsluice.ko.xz";
  facts.module.loaded = true;
  facts.module.device_node = DeviceNodeFacts{.mode = 0660, .owner = "root", .group = "memsluice"};
  facts.module.info = ModuleInfo{.release = "0.1.0", .abi_version = 1, .features = kAllFeatures};
  facts.nodes = {{.id = 0, .has_cpus = true, .movable_blocks = 0, .other_blocks = 16},
                 {.id = 1, .has_cpus = false, .movable_blocks = 48, .other_blocks = 0}};
  facts.tiers = {{"memory_tier22", {1}}, {"memory_tier4", {0}}};
  facts.cgroup = {.mounted = true,
                  .mount_point = "/sys/fs/cgroup",
                  .controllers = {"cpuset", "cpu", "io", "memory"},
                  .subtree_control = {"cpu", "memory"}};
  facts.channels = {.described = true, .channels = 4, .made = 3, .problems = {}};
  facts.balancers.numa_balancing = "0";
  facts.balancers.demotion_enabled = "false";
  facts.balancers.ksm_run = "0";
  facts.balancers.transparent_hugepage = "always [madvise] never";
  facts.dsa = {{.name = "dsa0",
                .state = "enabled",
                .iommu_domain = "identity",
                .queues = {{"wq0.0", "enabled", "dedicated", "kernel", "memsluice"}}}};
  facts.dsa_engine.loaded = true;
  facts.caller = {.user = 0, .sys_admin = true};
  facts.daemon = {.socket = "/run/memsluice/api", .version = "0.1.0", .may_change = true};
  return facts;
}

const Finding* find(const std::vector<Finding>& findings, std::string_view id) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& finding) { return finding.id == id; });
  return found == findings.end() ? nullptr : &*found;
}

TEST(Judge, FindsNothingWrongWithAHealthyHost) {
  const auto findings = judge(healthy(), "0.1.0");
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.level, Level::kOk) << finding.id << ": " << finding.found;
    EXPECT_EQ(finding.advice, "") << finding.id;
    EXPECT_FALSE(finding.object.empty()) << finding.id;
    EXPECT_FALSE(finding.found.empty()) << finding.id;
  }
  EXPECT_FALSE(any_error(findings));
}

struct Change {
  const char* name;
  std::function<void(Facts&)> make;
  const char* id;
  Level level;
  const char* object;
  const char* found;
};

class Changes : public testing::TestWithParam<Change> {};

TEST_P(Changes, AreFound) {
  Facts facts = healthy();
  GetParam().make(facts);
  const auto findings = judge(facts, "0.1.0");
  const Finding* finding = find(findings, GetParam().id);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->level, GetParam().level);
  EXPECT_EQ(finding->object, GetParam().object);
  EXPECT_EQ(finding->found, GetParam().found);
  EXPECT_FALSE(finding->advice.empty()) << "what is to be done?";
  EXPECT_EQ(any_error(findings), GetParam().level == Level::kError);
}

INSTANTIATE_TEST_SUITE_P(
    Judge, Changes,
    testing::Values(
        Change{"old_kernel", [](Facts& f) { f.kernel.release = "6.1.0-57-amd64"; }, "kernel",
               Level::kError, "6.1.0-57-amd64", "older than 6.12"},
        Change{"wrong_channels",
               [](Facts& f) { f.channels = {.described = true, .problems = {"overlap"}}; },
               "channels", Level::kError, "/etc/memsluice/channels.toml", "overlap"},
        Change{"other_kernel", [](Facts& f) { f.kernel.release = "6.18.44"; }, "kernel",
               Level::kNote, "6.18.44", "not one of the tested kernels, 6.12 and 7.3"},
        Change{"no_release", [](Facts& f) { f.kernel.release = ""; }, "kernel", Level::kWarning,
               "/proc/sys/kernel/osrelease", "\"\" is no kernel release"},
        Change{"no_btf", [](Facts& f) { f.kernel.btf = false; }, "btf", Level::kError,
               "/sys/kernel/btf/vmlinux",
               "missing: signatures of kernel functions cannot be checked"},
        Change{"no_kprobes", [](Facts& f) { f.kernel.kprobes = false; }, "symbols", Level::kError,
               "/proc/kallsyms", "kprobes missing: the module cannot find unexported functions"},
        Change{"no_lookup", [](Facts& f) { f.kernel.kallsyms_lookup = false; }, "symbols",
               Level::kError, "/proc/kallsyms",
               "kallsyms_lookup_name missing: the module cannot find unexported functions"},
        Change{"kprobes_off", [](Facts& f) { f.kernel.kprobes_on = false; }, "symbols",
               Level::kError, "/sys/kernel/debug/kprobes/enabled", "kprobes are switched off"},
        Change{"lockdown", [](Facts& f) { f.kernel.lockdown = "none [integrity] confidentiality"; },
               "lockdown", Level::kWarning, "/sys/kernel/security/lockdown",
               "integrity: the kernel loads signed modules only"},
        Change{"signatures", [](Facts& f) { f.kernel.module_signatures_enforced = "Y"; },
               "lockdown", Level::kWarning, "/sys/kernel/security/lockdown",
               "none: the kernel loads signed modules only"},
        Change{"not_built", [](Facts& f) { f.module = {}; }, "module-installed", Level::kError,
               "memsluice.ko for 6.12.95+deb13-amd64", "not built for this kernel"},
        Change{"insmod", [](Facts& f) { f.module.installed_path.reset(); }, "module-installed",
               Level::kNote, "memsluice.ko for 6.12.95+deb13-amd64",
               "loaded, but not known to modprobe"},
        Change{"not_loaded",
               [](Facts& f) {
                 f.module.loaded = false;
                 f.module.device_node.reset();
                 f.module.info.reset();
               },
               "module", Level::kError, "memsluice.ko", "not loaded"},
        Change{"no_node",
               [](Facts& f) {
                 f.module.device_node.reset();
                 f.module.info.reset();
               },
               "module", Level::kError, "/dev/memsluice", "loaded, but the device node is missing"},
        Change{"denied",
               [](Facts& f) {
                 f.module.info.reset();
                 f.module.info_error = {.code = ErrorCode::kDenied};
               },
               "module", Level::kNote, "/dev/memsluice",
               "loaded; this user may not ask it for its version"},
        Change{"other_abi",
               [](Facts& f) {
                 f.module.info.reset();
                 f.module.info_error = {.code = ErrorCode::kUnavailable,
                                        .message = "the module speaks version 2 of the ABI",
                                        .hint = "install both from the same release"};
               },
               "module", Level::kError, "/dev/memsluice", "the module speaks version 2 of the ABI"},
        Change{"feature_off",
               [](Facts& f) { f.module.info->features &= ~MEMSLUICE_FEATURE_HOTNESS_SECONDARY; },
               "features", Level::kWarning, "/dev/memsluice",
               "off: hotness_secondary; on: migrate, migrate_tenant, hotness_scan, tiering, "
               "tenant_events, migrate_batch, engines, census, placement, hotplug, redistribute"},
        Change{"open_node", [](Facts& f) { f.module.device_node->mode = 0666; }, "device-node",
               Level::kNote, "/dev/memsluice", "0666 root:memsluice"},
        Change{"no_daemon",
               [](Facts& f) {
                 f.daemon = {.socket = "/run/memsluice/api",
                             .problem = "no such socket",
                             .advice = "start it"};
               },
               "daemon", Level::kError, "/run/memsluice/api", "no such socket"},
        Change{"other_daemon", [](Facts& f) { f.daemon.version = "0.2.0"; }, "daemon",
               Level::kWarning, "/run/memsluice/api",
               "memsluiced 0.2.0, but this command is 0.1.0"},
        Change{"plain_user",
               [](Facts& f) {
                 f.caller = {.user = 1000, .sys_admin = false};
                 f.daemon.may_change = false;
               },
               "permissions", Level::kNote, "user 1000", "may look, but not change anything"},
        Change{"no_cgroup", [](Facts& f) { f.cgroup = {}; }, "cgroup", Level::kError,
               "/proc/self/mounts", "no cgroup v2: there can be no tenant"},
        Change{"no_cpuset", [](Facts& f) { f.cgroup.controllers = {"memory"}; }, "cgroup",
               Level::kError, "/sys/fs/cgroup/cgroup.controllers",
               "controller cpuset is not there"},
        Change{"memory_not_delegated", [](Facts& f) { f.cgroup.subtree_control = {"cpu"}; },
               "cgroup", Level::kWarning, "/sys/fs/cgroup/cgroup.subtree_control",
               "controller memory is not handed to the cgroups below: pages are charged to no "
               "tenant"},
        Change{"one_node", [](Facts& f) { f.nodes.pop_back(); }, "nodes", Level::kWarning,
               "/sys/devices/system/node", "all memory is on node 0"},
        Change{"one_tier",
               [](Facts& f) {
                 f.tiers = {{"memory_tier4", {0, 1}}};
               },
               "tiers", Level::kWarning, "/sys/devices/virtual/memory_tiering",
               "one tier for all: memory_tier4: 0,1"},
        Change{"empty_tier",
               [](Facts& f) {
                 f.tiers = {{"memory_tier4", {0, 1}}, {"memory_tier22", {}}};
               },
               "tiers", Level::kWarning, "/sys/devices/virtual/memory_tiering",
               "one tier for all: memory_tier4: 0,1"},
        Change{"not_movable", [](Facts& f) { f.nodes[1].other_blocks = 2; }, "movable",
               Level::kNote, "/sys/devices/system/node/node1",
               "48 of 50 memory blocks are movable; the kernel may put its own data there"},
        Change{"numa_balancing", [](Facts& f) { f.balancers.numa_balancing = "2"; },
               "numa-balancing", Level::kWarning, "kernel.numa_balancing",
               "on, mode 2: the kernel moves pages between nodes too"},
        Change{"demotion", [](Facts& f) { f.balancers.demotion_enabled = "true"; }, "demotion",
               Level::kNote, "/sys/kernel/mm/numa/demotion_enabled",
               "on: under pressure, reclaim demotes pages of any tenant by its own choice"},
        Change{"damon", [](Facts& f) { f.balancers.damon = {"kdamond 0: migrate_hot"}; }, "damon",
               Level::kWarning, "/sys/kernel/mm/damon", "moves pages too: kdamond 0: migrate_hot"},
        Change{"damon_watches", [](Facts& f) { f.balancers.damon_watching = {"kdamond 1"}; },
               "damon", Level::kNote, "/sys/kernel/mm/damon", "kdamond 1 clears accessed bits"},
        Change{"numad", [](Facts& f) { f.balancers.numad_pid = 77; }, "numad", Level::kWarning,
               "process 77", "numad moves processes and their pages between nodes"},
        Change{"ksm", [](Facts& f) { f.balancers.ksm_run = "1"; }, "ksm", Level::kNote,
               "/sys/kernel/mm/ksm/run",
               "on: merged pages are shared, and are moved only with --all-mappings"},
        Change{"thp_never",
               [](Facts& f) { f.balancers.transparent_hugepage = "always madvise [never]"; }, "thp",
               Level::kNote, "/sys/kernel/mm/transparent_hugepage/enabled", "never"},
        Change{"dsa_disabled",
               [](Facts& f) {
                 f.dsa[0].state = "disabled";
                 f.dsa[0].queues[0].state = "disabled";
               },
               "dsa", Level::kNote, "dsa0", "disabled, wq0.0 disabled"},
        Change{"iommu_translates", [](Facts& f) { f.dsa[0].iommu_domain = "DMA-FQ"; }, "iommu",
               Level::kNote, "dsa0",
               "DMA-FQ: addresses are translated, so each copy costs the CPU a mapping"},
        Change{"dsa_queue_disabled", [](Facts& f) { f.dsa[0].queues[0].state = "disabled"; }, "dsa",
               Level::kNote, "dsa0", "enabled, wq0.0 disabled"},
        Change{"dsa_queue_of_another",
               [](Facts& f) { f.dsa[0].queues[0].driver_name = "dmaengine"; }, "dsa", Level::kNote,
               "dsa0", "enabled, wq0.0 dedicated kernel dmaengine"},
        Change{"dsa_queue_shared", [](Facts& f) { f.dsa[0].queues[0].mode = "shared"; }, "dsa",
               Level::kWarning, "dsa0", "enabled, wq0.0 shared kernel memsluice"},
        Change{"dsa_engine_not_loaded", [](Facts& f) { f.dsa_engine.loaded = false; }, "dsa-engine",
               Level::kNote, "memsluice_dsa", "not loaded: the CPU copies pages"},
        Change{"dsa_queue_stuck", [](Facts& f) { f.dsa_engine.stuck = {"wq0.0"}; }, "dsa-engine",
               Level::kWarning, "memsluice_dsa", "stuck: wq0.0"},
        Change{"dsa_queue_resting", [](Facts& f) { f.dsa_engine.resting = {"wq0.0"}; },
               "dsa-engine", Level::kNote, "memsluice_dsa",
               "wq0.0 rests, for it has failed: dmesg says how"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Judge, GroupThatMayUseTheSocketIsNamed) {
  Facts facts = healthy();
  facts.caller = {.user = 1000, .sys_admin = false};
  facts.daemon.may_change = false;
  facts.daemon.socket_node = DeviceNodeFacts{.mode = 0660, .owner = "root", .group = "operators"};
  const auto findings = judge(facts, "0.1.0");
  EXPECT_EQ(find(findings, "permissions")->advice,
            "run memsluice as root, or join the group: adduser USER operators");
}

TEST(Judge, NamesWhatAFeatureLacks) {
  Facts facts = healthy();
  facts.module.info->features &= ~MEMSLUICE_FEATURE_TIERING;
  facts.module.lacking_symbols = {"migrate_pages missing"};
  const auto findings = judge(facts, "0.1.0");
  EXPECT_EQ(find(findings, "features")->advice, "what this kernel lacks: migrate_pages missing");
}

TEST(Judge, SaysHowAQueueOfDsaBecomesOurs) {
  const auto advice = [](const std::function<void(DsaFacts&)>& change) {
    Facts facts = healthy();
    change(facts.dsa[0]);
    return find(judge(facts, "0.1.0"), "dsa")->advice;
  };
  EXPECT_EQ(advice([](DsaFacts&) {}), "");
  EXPECT_EQ(advice([](DsaFacts& dsa) { dsa.state = "disabled"; }),
            "accel-config enable-device dsa0, enable-wq dsa0/wq0.0");
  EXPECT_EQ(advice([](DsaFacts& dsa) { dsa.queues[0].state = "disabled"; }),
            "accel-config enable-wq dsa0/wq0.0");
  EXPECT_EQ(advice([](DsaFacts& dsa) { dsa.queues.clear(); }).substr(0, 27),
            "no queue is memsluice's: ac");
}

TEST(Judge, NamesOptionalDevices) {
  Facts facts = healthy();
  facts.cxl = {"mem0", "region0"};
  facts.rdma = {
      {.name = "mlx5_0", .driver = "mlx5_core", .ports = {"port 1 4: ACTIVE (Ethernet)"}}};
  const auto findings = judge(facts, "0.1.0");
  EXPECT_EQ(find(findings, "dsa")->found, "enabled, wq0.0 dedicated kernel memsluice");
  EXPECT_EQ(find(findings, "cxl")->found, "mem0, region0");
  EXPECT_EQ(find(findings, "rdma")->object, "mlx5_0");
  EXPECT_EQ(find(findings, "rdma")->found, "mlx5_core, port 1 4: ACTIVE (Ethernet)");
}

TEST(Findings, AsText) {
  const std::vector<Finding> findings = {
      {"kernel", Level::kOk, "6.12.95", "supported", ""},
      {"damon", Level::kWarning, "/sys\033", "moves pages too", "stop it"}};
  EXPECT_EQ(to_text(findings),
            "ok       kernel            6.12.95: supported\n"
            "warning  damon             /sys\\x1b: moves pages too\n"
            "                           -> stop it\n"
            "0 errors, 1 warnings, 0 notes\n");
}

TEST(Findings, AsJson) {
  const std::vector<Finding> findings = {{"thp", Level::kNote, "a", "b", "c"}};
  EXPECT_EQ(to_json(findings), Json::parse(R"({"findings": [
      {"id": "thp", "level": "note", "object": "a", "found": "b", "advice": "c"}]})"));
}

}  // namespace
}  // namespace memsluice::doctor
