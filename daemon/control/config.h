// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/base/config_problem.h"
#include "daemon/base/log.h"
#include "daemon/host/counters/channel_counters.h"
#include "daemon/host/kernel_module.h"
#include "daemon/host/knobs.h"

namespace memsluice {

inline constexpr const char* kDefaultConfigPath = "/etc/memsluice/memsluiced.toml";

// The most a tenant may hold in tier 0: bytes, or a share of what tier 0 has now.
struct FastLimit {
  uint64_t bytes = MEMSLUICE_NO_LIMIT;
  std::optional<uint32_t> percent = {};

  uint64_t resolve(uint64_t tier_0_bytes) const;
  bool operator==(const FastLimit&) const = default;
};

// A policy as far as somebody has said it.
struct PolicySettings {
  std::optional<bool> tiering = {};
  std::optional<FastLimit> fast_limit = {};
  std::optional<uint32_t> promote_mib_per_s = {};
  std::optional<uint32_t> demote_mib_per_s = {};
  std::optional<std::vector<Channel>> channels = {};
  std::optional<ChannelChange> channel_change = {};  // instead of it; in no configuration
  std::optional<uint32_t> granule_order = {};

  // What is not said here is taken from `below`.
  PolicySettings or_else(const PolicySettings& below) const;
  Policy applied_to(Policy policy, uint64_t tier_0_bytes) const;
  bool operator==(const PolicySettings&) const = default;
};

struct TenantRule {
  std::string cgroup;  // a path or a pattern
  PolicySettings settings = {};

  bool operator==(const TenantRule&) const = default;
};

struct KnobSetting {
  std::string value;
  SourcePosition position = {};

  bool operator==(const KnobSetting& other) const { return value == other.value; }
};

// Where Prometheus' metrics are written for others to serve.
struct MetricsSettings {
  std::string textfile = {};  // empty: nowhere
  Milliseconds period{15'000};

  bool operator==(const MetricsSettings&) const = default;
};

struct Config {
  Milliseconds rescan{500};
  LogLevel log_level = LogLevel::kInfo;
  std::string socket = "/run/memsluice/api";
  std::string group = "memsluice";
  std::string dsa_configuration = "/etc/accel-config/accel-config.conf";
  bool dsa_replay = false;     // devices that have lost our queues are reset and configured again
  Milliseconds upkeep{30000};  // between two looks at what lies beside its channels; 0: none
  uint32_t upkeep_mib_per_s = 128;
  std::set<int> exclusive =
      {};  // nodes for tenants that have them as channels, and for nobody else
  CounterSettings counters = {};
  bool lost_time = false;
  MetricsSettings metrics = {};
  PolicySettings defaults = built_in_defaults();
  std::vector<TenantRule> tenants = {};
  std::map<std::string, KnobSetting> module = {};

  static PolicySettings built_in_defaults();
  std::map<std::string, std::string> module_values() const;
  bool operator==(const Config&) const = default;
};

struct LoadedConfig {
  Config config = {};
  std::vector<std::string> files = {};
  std::vector<ConfigProblem> problems = {};  // all there are; with any, config is not to be used
};

// Reads the file and conf.d/*.toml next to it, in lexical order; what is read later wins. Only the
// file at kDefaultConfigPath may be missing.
LoadedConfig load_config(const std::string& path);

// One file on top of what `loaded` has already.
void parse_config(std::string_view text, const std::string& file, LoadedConfig& loaded);

// Names of [module] that the module does not have. A module that is not loaded has no say.
void check_knob_names(const Knobs& knobs, LoadedConfig& loaded);

}  // namespace memsluice
