// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "daemon/base/toml_table.h"
#include "daemon/base/units.h"
#include "daemon/host/cgroups.h"
#include "daemon/host/files.h"
#include "daemon/host/numa.h"

namespace memsluice {
namespace {

// A cgroup that comes is found within a second, whatever is configured.
constexpr uint64_t kRescanMsMin = 50;
constexpr uint64_t kRescanMsMax = 1000;
constexpr uint64_t kUpkeepSMax = 24 * 60 * 60;
constexpr uint64_t kMetricsPeriodMsMin = 1000;
constexpr uint64_t kMetricsPeriodMsMax = 600'000;

Error bad_value(std::string message, std::string hint = {}) {
  return {.code = ErrorCode::kBadRequest, .message = std::move(message), .hint = std::move(hint)};
}

Result<FastLimit> parse_fast_limit(const std::string& text) {
  if (text == "none") return FastLimit{};
  if (text.ends_with('%')) {
    auto percent = parse_percent(text);
    if (!percent.ok()) return std::move(percent).error();
    return FastLimit{.percent = *percent};
  }
  auto bytes = parse_bytes(text);
  if (!bytes.ok())
    return std::move(bytes).error().with_hint("write it as \"512M\", \"30%\" or \"none\"");
  return FastLimit{.bytes = *bytes};
}

Result<LogLevel> parse_log_level(const std::string& text) {
  if (auto level = log_level_from_name(text)) return *level;
  return bad_value(fmt::format("\"{}\" is no level", text), "error, warning, info or debug");
}

Result<std::string> parse_socket(const std::string& text) {
  if (text.starts_with('/') && text.size() < sizeof(sockaddr_un::sun_path)) return text;
  return bad_value(
      fmt::format("\"{}\" is no path of a socket", text),
      fmt::format("an absolute path of less than {} bytes", sizeof(sockaddr_un::sun_path)));
}

Result<std::string> parse_file(const std::string& text) {
  if (text.starts_with('/') && text.find('\0') == text.npos) return text;
  return bad_value(fmt::format("\"{}\" is no path of a file", text), "an absolute path");
}

Result<std::string> parse_counter_source(const std::string& text) {
  if (text == "pmu" || text == "none") return text;
  auto path = parse_file(text);
  if (path.ok()) return path;
  return bad_value(fmt::format("\"{}\" is no source of counters", text),
                   "\"pmu\", \"none\", or the absolute path of a file or a unix socket");
}

// What collects it takes files of this name only.
Result<std::string> parse_textfile(const std::string& text) {
  if (text.empty()) return text;
  auto path = parse_file(text);
  if (path.ok() && text.ends_with(".prom")) return path;
  return bad_value(fmt::format("\"{}\" is no path of a text file", text),
                   "an absolute path that ends with .prom");
}

Result<std::string> parse_pattern(const std::string& text) {
  auto checked = check_cgroup_path(text);
  if (checked.ok()) return text;
  return bad_value(fmt::format("\"{}\": {}", text, checked.error().message), checked.error().hint);
}

Result<std::set<int>> parse_exclusive(const std::string& text) {
  std::set<int> nodes;
  if (text == "none") return nodes;
  const auto channels = parse_channels(text);
  const bool weighted = text.find(':') != std::string::npos;
  if (!channels.ok() || weighted)
    return bad_value(fmt::format("\"{}\" names no nodes", text), "write it as 1,2,3 or none");
  for (const Channel& channel : *channels) nodes.insert(static_cast<int>(channel.node));
  return nodes;
}

template <typename T>
void take(std::optional<T> from, T& to) {
  if (from) to = *std::move(from);
}

std::optional<uint32_t> read_rate(TomlTable& table, const char* key) {
  auto rate = table.integer(key, 0, MEMSLUICE_MIB_PER_S_MAX);
  return rate ? std::optional(static_cast<uint32_t>(*rate)) : std::nullopt;
}

PolicySettings read_policy(TomlTable& table) {
  return {.tiering = table.boolean("tiering"),
          .fast_limit = table.converted<FastLimit>("fast_limit", parse_fast_limit),
          .promote_mib_per_s = read_rate(table, "promote_mib_per_s"),
          .demote_mib_per_s = read_rate(table, "demote_mib_per_s"),
          .channels = table.converted<std::vector<Channel>>("channels", parse_channels),
          .granule_order = table.converted<uint32_t>("granule", parse_granule)};
}

void read_tenants(TomlTable& root, Config& config) {
  std::set<std::string> in_this_file;
  for (TomlTable& table : root.array_of_tables("tenant")) {
    auto pattern = table.converted<std::string>("cgroup", parse_pattern);
    PolicySettings settings = read_policy(table);
    table.finish();
    if (!table.contents().contains("cgroup"))
      table.problem("", "has no cgroup", "cgroup = \"/redis.slice\"");
    if (!pattern) continue;
    if (!in_this_file.insert(*pattern).second)
      table.problem("cgroup", fmt::format("\"{}\" is there twice in this file", *pattern));
    auto same = std::find_if(config.tenants.begin(), config.tenants.end(),
                             [&](const TenantRule& rule) { return rule.cgroup == *pattern; });
    // Moved to the end, because the last pattern that matches a cgroup is the one that counts.
    if (same != config.tenants.end()) {
      settings = settings.or_else(same->settings);
      config.tenants.erase(same);
    }
    config.tenants.push_back({*std::move(pattern), settings});
  }
}

std::optional<std::string> knob_value(const toml::node& node) {
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "1" : "0";
  if (const auto* text = node.as_string())
    if (text->get().find('\n') == std::string::npos && text->get().size() < 4096)
      return text->get();
  return std::nullopt;
}

bool is_knob_name(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

void read_module(TomlTable& table, Config& config) {
  for (const auto& [key, node] : table.contents()) {
    auto value = knob_value(node);
    if (!is_knob_name(key.str()))
      table.problem(key.str(), "no such key", "the names are those of /sys/kernel/memsluice");
    else if (!value)
      table.problem(key.str(), "must be a whole number, true, false or a string of one line");
    else
      config.module[std::string(key.str())] = {*std::move(value), table.position(key.str())};
  }
}

void read_counters(TomlTable& table, Config& config) {
  CounterSettings& counters = config.counters;
  take(table.boolean("lost_time"), config.lost_time);
  take(table.converted<std::string>("source", parse_counter_source), counters.source);
  if (auto nodes = table.table("nodes")) {
    for (const auto& [key, value] : nodes->contents()) {
      const std::string name(key.str());
      if (auto node = nodes->integer(name.c_str(), 0, kNodeIdMax))
        counters.nodes[name] = static_cast<int>(*node);
    }
    nodes->finish();
  }
  table.finish();
}

void read_metrics(TomlTable& table, MetricsSettings& metrics) {
  take(table.converted<std::string>("textfile", parse_textfile), metrics.textfile);
  if (auto ms = table.integer("period_ms", kMetricsPeriodMsMin, kMetricsPeriodMsMax))
    metrics.period = Milliseconds(*ms);
  table.finish();
}

void read_root(TomlTable& root, Config& config) {
  if (auto daemon = root.table("daemon")) {
    if (auto rescan_ms = daemon->integer("rescan_ms", kRescanMsMin, kRescanMsMax))
      config.rescan = Milliseconds(*rescan_ms);
    take(daemon->converted<LogLevel>("log_level", parse_log_level), config.log_level);
    daemon->finish();
  }
  if (auto api = root.table("api")) {
    take(api->converted<std::string>("socket", parse_socket), config.socket);
    take(api->text("group"), config.group);
    api->finish();
  }
  if (auto channels = root.table("channels")) {
    if (auto upkeep_s = channels->integer("upkeep_s", 0, kUpkeepSMax))
      config.upkeep = Milliseconds(*upkeep_s * 1000);
    if (auto rate = channels->integer("upkeep_mib_per_s", 1, MEMSLUICE_MIB_PER_S_MAX))
      config.upkeep_mib_per_s = static_cast<uint32_t>(*rate);
    take(channels->converted<std::set<int>>("exclusive", parse_exclusive), config.exclusive);
    channels->finish();
  }
  if (auto dsa = root.table("dsa")) {
    take(dsa->converted<std::string>("configuration", parse_file), config.dsa_configuration);
    take(dsa->boolean("replay"), config.dsa_replay);
    dsa->finish();
  }
  if (auto counters = root.table("counters")) read_counters(*counters, config);
  if (auto metrics = root.table("metrics")) read_metrics(*metrics, config.metrics);
  if (auto defaults = root.table("defaults")) {
    config.defaults = read_policy(*defaults).or_else(config.defaults);
    defaults->finish();
  }
  read_tenants(root, config);
  if (auto module = root.table("module")) read_module(*module, config);
  root.finish();
}

std::vector<std::string> drop_ins(const std::string& path, std::vector<ConfigProblem>& problems) {
  std::string directory_path = std::filesystem::path(path).parent_path() / "conf.d";
  auto directory = open_directory(AT_FDCWD, directory_path);
  if (!directory.ok()) {
    if (directory.error().os_error != ENOENT)
      problems.push_back({{directory_path, 0}, "", directory.error().message});
    return {};
  }
  std::vector<std::string> files;
  if (auto names = list_directory(*directory); names.ok())
    for (const std::string& name : *names)
      if (name.ends_with(".toml") && !name.starts_with('.'))
        files.push_back(directory_path + "/" + name);
  return files;
}

}  // namespace

uint64_t FastLimit::resolve(uint64_t tier_0_bytes) const {
  if (!percent) return bytes;
  // In whole MiB, so that a few pages more or less in the tier change nothing.
  constexpr uint64_t kMib = 1 << 20;
  return tier_0_bytes / kMib * *percent / 100 * kMib;
}

PolicySettings PolicySettings::or_else(const PolicySettings& below) const {
  auto first = [](const auto& a, const auto& b) { return a ? a : b; };
  return {.tiering = first(tiering, below.tiering),
          .fast_limit = first(fast_limit, below.fast_limit),
          .promote_mib_per_s = first(promote_mib_per_s, below.promote_mib_per_s),
          .demote_mib_per_s = first(demote_mib_per_s, below.demote_mib_per_s),
          .channels = first(channels, below.channels),
          .granule_order = first(granule_order, below.granule_order)};
}

Policy PolicySettings::applied_to(Policy policy, uint64_t tier_0_bytes) const {
  if (fast_limit) policy.fast_limit_bytes = fast_limit->resolve(tier_0_bytes);
  take(tiering, policy.tiering);
  take(promote_mib_per_s, policy.promote_mib_per_s);
  take(demote_mib_per_s, policy.demote_mib_per_s);
  take(channels, policy.placement.channels);
  take(granule_order, policy.placement.granule_order);
  // What nobody places has no granule, and the module keeps none.
  if (policy.placement.channels.empty()) policy.placement = {};
  return policy;
}

PolicySettings Config::built_in_defaults() {
  return {.tiering = true,
          .fast_limit = FastLimit{},
          .promote_mib_per_s = 1024,
          .demote_mib_per_s = 1024};
}

std::map<std::string, std::string> Config::module_values() const {
  std::map<std::string, std::string> values;
  for (const auto& [name, setting] : module) values[name] = setting.value;
  return values;
}

void parse_config(std::string_view text, const std::string& file, LoadedConfig& loaded) {
  read_toml(text, file, loaded.problems, [&](TomlTable& root) { read_root(root, loaded.config); });
}

LoadedConfig load_config(const std::string& path) {
  LoadedConfig loaded;
  std::vector<std::string> files = {path};
  for (std::string& file : drop_ins(path, loaded.problems)) files.push_back(std::move(file));
  for (const std::string& file : files) {
    auto text = read_file(AT_FDCWD, file);
    if (text.ok()) {
      loaded.files.push_back(file);
      parse_config(*text, file, loaded);
    } else if (text.error().os_error != ENOENT || file != kDefaultConfigPath) {
      loaded.problems.push_back({{file, 0}, "", text.error().message});
    }
  }
  return loaded;
}

void check_knob_names(const Knobs& knobs, LoadedConfig& loaded) {
  auto known = knobs.names();
  if (!known.ok()) return;
  for (const auto& [name, setting] : loaded.config.module)
    if (!std::binary_search(known->begin(), known->end(), name))
      loaded.problems.push_back({setting.position, "module." + name, "the module has no such value",
                                 fmt::format("it has: {}", fmt::join(*known, ", "))});
}

}  // namespace memsluice
