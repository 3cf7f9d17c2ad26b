// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/base/temporary_directory.h"

namespace memsluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

LoadedConfig parse(std::string_view text) {
  LoadedConfig loaded;
  parse_config(text, "x.toml", loaded);
  return loaded;
}

std::vector<std::string> problems(const LoadedConfig& loaded) {
  std::vector<std::string> lines;
  for (const ConfigProblem& problem : loaded.problems) lines.push_back(problem.describe());
  return lines;
}

TEST(Config, ReadsEverythingThereIs) {
  LoadedConfig loaded = parse(R"(
[daemon]
rescan_ms = 250
log_level = "debug"
[api]
socket = "/tmp/api"
group = "wheel"
[dsa]
configuration = "/etc/dsa.conf"
[counters]
source = "/run/exporter"
lost_time = true
[counters.nodes]
"socket0/uncore_imc_0" = 2
[metrics]
textfile = "/var/lib/prometheus/node-exporter/memsluice.prom"
period_ms = 5000
[defaults]
promote_mib_per_s = 64
[[tenant]]
cgroup = "/redis.slice"
fast_limit = "256M"
tiering = false
[[tenant]]
cgroup = "/machine.slice/*.scope"
fast_limit = "30%"
[[tenant]]
cgroup = "/free.slice"
fast_limit = "none"
demote_mib_per_s = 0
channels = "1:3,2:2"
granule = "4K"
[module]
scan_period_ms = 500
verbose = true
mode = "fast"
)");
  ASSERT_THAT(problems(loaded), IsEmpty());
  const Config& config = loaded.config;
  EXPECT_EQ(config.rescan, Milliseconds(250));
  EXPECT_EQ(config.log_level, LogLevel::kDebug);
  EXPECT_EQ(config.socket, "/tmp/api");
  EXPECT_EQ(config.group, "wheel");
  EXPECT_EQ(config.dsa_configuration, "/etc/dsa.conf");
  EXPECT_EQ(config.counters,
            (CounterSettings{.source = "/run/exporter", .nodes = {{"socket0/uncore_imc_0", 2}}}));
  EXPECT_TRUE(config.lost_time);
  EXPECT_EQ(config.metrics,
            (MetricsSettings{.textfile = "/var/lib/prometheus/node-exporter/memsluice.prom",
                             .period = Milliseconds(5000)}));
  EXPECT_EQ(config.defaults.promote_mib_per_s, 64u);
  EXPECT_EQ(config.defaults.demote_mib_per_s, 1024u);
  ASSERT_EQ(config.tenants.size(), 3u);
  EXPECT_EQ(config.tenants[0].settings.fast_limit, FastLimit{.bytes = 256u << 20});
  EXPECT_EQ(config.tenants[0].settings.tiering, false);
  EXPECT_EQ(config.tenants[1].settings.fast_limit, FastLimit{.percent = 30});
  EXPECT_EQ(config.tenants[2].settings.fast_limit, FastLimit{});
  EXPECT_EQ(config.tenants[2].settings.demote_mib_per_s, 0u);
  EXPECT_EQ(config.tenants[2].settings.channels, (std::vector<Channel>{{1, 3}, {2, 2}}));
  EXPECT_EQ(config.tenants[2].settings.granule_order, 0u);
  EXPECT_THAT(config.module_values(),
              ElementsAre(testing::Pair("mode", "fast"), testing::Pair("scan_period_ms", "500"),
                          testing::Pair("verbose", "1")));
}

TEST(Config, AnEmptyFileIsTheDefaults) {
  LoadedConfig loaded = parse("");
  EXPECT_THAT(problems(loaded), IsEmpty());
  EXPECT_EQ(loaded.config, Config());
}

TEST(Config, TellsEveryProblemWithFileLineAndKey) {
  EXPECT_THAT(
      problems(parse(R"([daemon]
rescan_ms = 20
log_level = "loud"
speed = 1
[api]
socket = "api"
group = 7
[defaults]
tiering = "yes"
[[tenant]]
fast_limit = "12X"
[[tenant]]
cgroup = "redis.slice"
fast_limit = 5
promote_mib_per_s = 1048577
[[tenant]]
cgroup = "/a/../b"
fast_limit = "101%"
[[tenant]]
cgroup = "/a"
[[tenant]]
cgroup = "/a"
demote_mib_per_s = -1
[module]
"../x" = 1
y = 1.5
[tenants]
[dsa]
configuration = "dsa.conf"
[[tenant]]
cgroup = "/c"
channels = "1;2"
granule = "3M"
[counters]
source = "intel"
nodes = { "socket0/uncore_imc_0" = 1024, b = "1" }
[metrics]
textfile = "/var/lib/x.txt"
period_ms = 10
)")),
      ElementsAre(
          "x.toml:2: daemon.rescan_ms: must be a whole number from 50 to 1000",
          "x.toml:3: daemon.log_level: \"loud\" is no level (error, warning, info or debug)",
          "x.toml:4: daemon.speed: no such key (known are: log_level, rescan_ms)",
          "x.toml:6: api.socket: \"api\" is no path of a socket (an absolute path of less than 108 "
          "bytes)",
          "x.toml:7: api.group: must be a string, in quotes",
          "x.toml:9: defaults.tiering: must be true or false",
          "x.toml:10: tenant: has no cgroup (cgroup = \"/redis.slice\")",
          "x.toml:11: tenant.fast_limit: \"12X\" is not a size (write it as \"512M\", \"30%\" or "
          "\"none\")",
          "x.toml:13: tenant.cgroup: \"redis.slice\": a cgroup begins with a slash (write it as "
          "below the cgroup root, such as /redis.slice)",
          "x.toml:14: tenant.fast_limit: must be a string, in quotes",
          "x.toml:15: tenant.promote_mib_per_s: must be a whole number from 0 to 1048576",
          "x.toml:17: tenant.cgroup: \"/a/../b\": has a component . or .. (write it as below the "
          "cgroup root, such as /redis.slice)",
          "x.toml:18: tenant.fast_limit: \"101%\" is not a share (write it as 30%)",
          "x.toml:22: tenant.cgroup: \"/a\" is there twice in this file",
          "x.toml:23: tenant.demote_mib_per_s: must be a whole number from 0 to 1048576",
          "x.toml:25: module.../x: no such key (the names are those of /sys/kernel/memsluice)",
          "x.toml:26: module.y: must be a whole number, true, false or a string of one line",
          "x.toml:27: tenants: no such key (known are: api, channels, counters, daemon, defaults, "
          "dsa, "
          "metrics, module, tenant)",
          "x.toml:29: dsa.configuration: \"dsa.conf\" is no path of a file (an absolute path)",
          "x.toml:32: tenant.channels: \"1;2\" names no channels (write it as 1:3,2:2 (node 1 gets "
          "three parts, node 2 two) or none)",
          "x.toml:33: tenant.granule: 3145728 is no power of two from 4 KiB to 1 GiB (2M, the "
          "default, survives the kernel's collapse into huge pages)",
          "x.toml:35: counters.source: \"intel\" is no source of counters (\"pmu\", \"none\", or "
          "the absolute path of a file or a unix socket)",
          "x.toml:36: counters.nodes.b: must be a whole number from 0 to 1023",
          "x.toml:36: counters.nodes.socket0/uncore_imc_0: must be a whole number from 0 to 1023",
          "x.toml:38: metrics.textfile: \"/var/lib/x.txt\" is no path of a text file (an absolute "
          "path that ends with .prom)",
          "x.toml:39: metrics.period_ms: must be a whole number from 1000 to 600000"));
}

TEST(Config, TellsWhereTheSyntaxIsWrong) {
  auto lines = problems(parse("[api]\nsocket = \n"));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::StartsWith("x.toml:2: "));
  EXPECT_EQ(parse("[[[").problems.size(), 1u);
  EXPECT_THAT(
      problems(parse("\ngröße = 1")),
      ElementsAre(
          "x.toml:2: letters beyond ASCII stand in one-line strings and in comments only (put "
          "quotes around it, and a space in front of them)"));
  EXPECT_THAT(
      problems(parse("api = 1\ntenant = 2\ndaemon = []")),
      ElementsAre("x.toml:1: api: must be a table, [api]",
                  "x.toml:2: tenant: must be a list of tables, each with [[tenant]] above it",
                  "x.toml:3: daemon: must be a table, [daemon]"));
}

class ConfigFilesTest : public testing::Test {
 protected:
  LoadedConfig load() const { return load_config(directory_.path("/d.toml")); }
  TemporaryDirectory directory_;
};

TEST_F(ConfigFilesTest, LaterFilesWin) {
  directory_.write("/d.toml",
                   "[defaults]\npromote_mib_per_s = 1\ndemote_mib_per_s = 1\n"
                   "[[tenant]]\ncgroup = \"/a\"\nfast_limit = \"1M\"\ntiering = false\n"
                   "[[tenant]]\ncgroup = \"/b\"\n");
  directory_.write("/conf.d/20.toml", "[defaults]\npromote_mib_per_s = 3\n");
  directory_.write("/conf.d/10.toml",
                   "[defaults]\npromote_mib_per_s = 2\n"
                   "[[tenant]]\ncgroup = \"/a\"\nfast_limit = \"2M\"\n");
  directory_.write("/conf.d/30.toml.bak", "nonsense");
  LoadedConfig loaded = load();
  ASSERT_THAT(problems(loaded), IsEmpty());
  EXPECT_EQ(loaded.files.size(), 3u);
  EXPECT_EQ(loaded.config.defaults.promote_mib_per_s, 3u);
  EXPECT_EQ(loaded.config.defaults.demote_mib_per_s, 1u);
  ASSERT_EQ(loaded.config.tenants.size(), 2u);
  EXPECT_EQ(loaded.config.tenants[0].cgroup, "/b");
  EXPECT_EQ(loaded.config.tenants[1].settings.fast_limit, FastLimit{.bytes = 2u << 20});
  EXPECT_EQ(loaded.config.tenants[1].settings.tiering, false);
}

TEST_F(ConfigFilesTest, ProblemsOfAllFilesAreTold) {
  directory_.write("/d.toml", "a = 1\n");
  directory_.write("/conf.d/1.toml", "\nb = 1\n");
  const std::string hint =
      ": no such key (known are: api, channels, counters, daemon, defaults, dsa, metrics, module, "
      "tenant)";
  EXPECT_THAT(problems(load()), ElementsAre(directory_.path("/d.toml:1: a") + hint,
                                            directory_.path("/conf.d/1.toml:2: b") + hint));
}

TEST_F(ConfigFilesTest, AFileThatWasNamedMustBeThere) {
  EXPECT_THAT(problems(load()),
              ElementsAre(directory_.path("/d.toml: open: No such file or directory")));
}

TEST_F(ConfigFilesTest, KnobNamesAreCheckedAgainstTheModule) {
  directory_.write("/d.toml", "[module]\ngood = 1\nbad = 2\n");
  directory_.write("/knobs/good", "0");
  LoadedConfig loaded = load();
  check_knob_names(Knobs(directory_.path("/not loaded")), loaded);
  EXPECT_THAT(problems(loaded), IsEmpty());
  check_knob_names(Knobs(directory_.path("/knobs")), loaded);
  EXPECT_THAT(problems(loaded),
              ElementsAre(directory_.path("/d.toml:3: module.bad: the module has no such value (it "
                                          "has: good)")));
}

TEST(FastLimit, AShareIsOfTier0InWholeMib) {
  EXPECT_EQ(FastLimit{.percent = 30}.resolve(1000u << 20), 300u << 20);
  EXPECT_EQ(FastLimit{.percent = 50}.resolve((3u << 20) + 4096), 1u << 20);
  EXPECT_EQ(FastLimit{.percent = 100}.resolve(uint64_t{1} << 50), uint64_t{1} << 50);
  EXPECT_EQ(FastLimit{.bytes = 7}.resolve(1), 7u);
  EXPECT_EQ(FastLimit{}.resolve(1), MEMSLUICE_NO_LIMIT);
}

TEST(PolicySettings, TakeFromBelowWhatTheyDoNotSay) {
  PolicySettings settings{.tiering = false};
  Policy policy = settings.or_else(Config::built_in_defaults()).applied_to(Policy(), 0);
  EXPECT_EQ(policy, (Policy{.tiering = false,
                            .fast_limit_bytes = MEMSLUICE_NO_LIMIT,
                            .promote_mib_per_s = 1024,
                            .demote_mib_per_s = 1024}));
}

}  // namespace
}  // namespace memsluice
