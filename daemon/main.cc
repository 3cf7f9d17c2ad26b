// SPDX-License-Identifier: GPL-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "daemon/daemon.h"

namespace memsluice {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitBadRequest = 2;

constexpr const char* kFooter = R"(
Keeps the tenants of memsluice.ko as its configuration says, while cgroups come and go, and answers
the command memsluice on a unix socket. It runs without the module, too, and takes it up when it is
loaded. When the daemon ends, the module goes on with what it was told.

  systemctl start memsluiced          start it
  systemctl reload memsluiced         read the configuration again (SIGHUP)
  memsluiced --check-config           tell everything that is wrong with it
  journalctl -u memsluiced            what it has done

Exit status: 0 well, 1 failed, 2 bad arguments or configuration.
See memsluiced(8), memsluiced.toml(5).)";

int check(LoadedConfig loaded, const Paths& paths) {
  check_knob_names(Knobs(paths.module_knobs), loaded);
  for (const ConfigProblem& problem : loaded.problems) fmt::print("{}\n", problem.describe());
  if (!loaded.problems.empty()) return kExitBadRequest;
  fmt::print("{}: no problems\n", fmt::join(loaded.files, ", "));
  return 0;
}

int run(const DaemonOptions& options, const LoadedConfig& loaded, const Paths& paths) {
  Log log;
  if (!loaded.problems.empty()) {
    [[maybe_unused]] Error first = problems_error(loaded, log);
    return kExitBadRequest;
  }
  SystemClock clock;
  auto loop = EventLoop::create(clock);
  if (!loop.ok()) {
    log.error("{}", loop.error().describe());
    return kExitFailed;
  }
  auto module = open_kernel_module(paths.device);
  auto dsa_devices = open_dsa_devices(paths.dsa_bus);
  auto engines = Engines::create(*module, *dsa_devices, **loop, log);
  if (!engines.ok()) {
    log.error("{}", engines.error().describe());
    return kExitFailed;
  }
  auto census = Census::create(*module, paths.cgroup_root, **loop);
  if (!census.ok()) {
    log.error("{}", census.error().describe());
    return kExitFailed;
  }
  auto channels = Channels::create(*module, paths.cgroup_root, **loop, log);
  if (!channels.ok()) {
    log.error("{}", channels.error().describe());
    return kExitFailed;
  }
  auto bandwidth = Bandwidth::create(**loop, log, [&](const CounterSettings& settings) {
    return make_channel_counters(settings, paths);
  });
  if (!bandwidth.ok()) {
    log.error("{}", bandwidth.error().describe());
    return kExitFailed;
  }
  LostTimes lost_times(load_lost_time_counters, log);
  Daemon daemon(options, loaded.config, paths, *module, **engines, **census, **channels,
                **bandwidth, lost_times, clock, **loop, log, ServiceManager::from_environment());
  auto ended = daemon.run();
  if (ended.ok()) return 0;
  log.error("{}", ended.error().describe());
  return kExitFailed;
}

int main(int argc, char** argv) {
  DaemonOptions options;
  bool check_only = false;
  CLI::App app("memsluiced: the daemon of memsluice", "memsluiced");
  app.add_option("--config", options.config_path,
                 "the configuration; conf.d/*.toml next to it is read on top of it")
      ->capture_default_str();
  app.add_option("--socket", options.socket, "where to listen, instead of [api] socket");
  app.add_flag("--check-config", check_only, "tell every problem of the configuration, and exit");
  app.set_version_flag("--version", "memsluiced " MEMSLUICE_VERSION);
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitBadRequest;
  }

  const Paths paths = Paths::of_this_host();
  LoadedConfig loaded = load_config(options.config_path);
  return check_only ? check(std::move(loaded), paths) : run(options, loaded, paths);
}

}  // namespace
}  // namespace memsluice

int main(int argc, char** argv) {
  return memsluice::main(argc, argv);
}
