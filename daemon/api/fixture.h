// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/api/methods.h"
#include "daemon/base/hand_clock.h"
#include "daemon/base/temporary_directory.h"
#include "daemon/host/fake_dsa_devices.h"
#include "daemon/host/fake_module.h"

namespace memsluice {

;

// The methods over a made-up host, for tests: /redis.slice, nodes 0 (tier 0) and 1, a fake
// module whose engine dsa copies by the fake device dsa0.
class ApiFixture {
 public:
  ApiFixture() {
    host_.make_directory("/cgroup/redis.slice");
    host_.write("/cgroup/redis.slice/memory.current", "8192\n");
    host_.write("/cgroup/redis.slice/memory.numa_stat", "anon N0=4096 N1=4096\n");
    host_.write("/node/has_memory", "0-1\n");
    for (const char* node : {"0", "1"}) {
      host_.write(std::string("/node/node") + node + "/meminfo",
                  "MemTotal: 2048 kB\nMemFree: 1024 kB\n");
      host_.write(std::string("/tiers/memory_tier") + node + "/nodelist", node);
    }
    paths_.cgroup_root = host_.path("/cgroup");
    paths_.nodes = host_.path("/node");
    paths_.memory_tiers = host_.path("/tiers");
    paths_.migration_statistics = host_.path("/migration");
    paths_.module_knobs = host_.path("/knobs");
    tenants_.emplace(module_, paths_, log_, Config());
    migrations_.emplace(module_, paths_, *loop_, log_);
    module_.add_engine("dsa", 100, {"wq0.0", "wq0.1"});
    module_.add_engine("cpu", 0, {});
    devices_.add("dsa0", 3, 2);
    devices_.configure(sample_dsa_configuration());
    upkeep_.emplace(*tenants_, *migrations_, clock_, log_);
    metrics_.emplace(module_, *tenants_, *engines_, *bandwidth_, *loop_, paths_, facts_.version,
                     log_);
    methods_.emplace(module_, *tenants_, *migrations_, *upkeep_, *engines_, *census_, *channels_,
                     *bandwidth_, *metrics_, *loop_, clock_, paths_, facts_,
                     [this] { return reload_result_; });
    tenants_->reconcile();
  }

  void turn() {
    if (!loop_->run_once(Milliseconds(0)).ok()) std::abort();
  }

  // Until what runs beside the loop has ended.
  void turn_while_busy() {
    while (engines_->busy() || census_->busy() || channels_->busy() || bandwidth_->busy())
      if (!loop_->run_once(Milliseconds(100)).ok()) std::abort();
  }

  TemporaryDirectory host_;
  Paths paths_;
  FakeModule module_;
  HandClock clock_;
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  std::string logged_;
  Log log_{LogLevel::kWarning, [this](std::string_view line) { logged_ += line; }};
  DaemonFacts facts_{.version = "0.1", .config_path = "/etc/x.toml", .config_loaded_unix_s = 500};
  Result<bool> reload_result_ = true;
  std::optional<Tenants> tenants_;
  std::optional<Migrations> migrations_;
  std::optional<Upkeep> upkeep_;
  FakeDsaDevices devices_;
  std::unique_ptr<Engines> engines_ = *Engines::create(module_, devices_, *loop_, log_);
  std::unique_ptr<Census> census_ = *Census::create(module_, host_.path("/cgroup"), *loop_);
  std::unique_ptr<Channels> channels_ =
      *Channels::create(module_, host_.path("/cgroup"), *loop_, log_);
  std::unique_ptr<Bandwidth> bandwidth_ = *Bandwidth::create(
      *loop_, log_,
      [this](const CounterSettings& settings) { return make_channel_counters(settings, paths_); });
  std::optional<Metrics> metrics_;
  std::optional<Methods> methods_;
};

}  // namespace memsluice
