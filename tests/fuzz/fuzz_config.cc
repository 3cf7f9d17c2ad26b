// SPDX-License-Identifier: GPL-2.0
// Whatever stands in a configuration, it has problems that say where, or it is within bounds.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/control/config.h"
#include "daemon/control/desired_state.h"

namespace memsluice {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_policy(const PolicySettings& settings) {
  require(settings.promote_mib_per_s.value_or(0) <= MEMSLUICE_MIB_PER_S_MAX);
  require(settings.demote_mib_per_s.value_or(0) <= MEMSLUICE_MIB_PER_S_MAX);
  if (settings.fast_limit && settings.fast_limit->percent)
    require(settings.fast_limit->resolve(uint64_t{1} << 40) <= uint64_t{1} << 40);
}

void run(std::string_view input) {
  LoadedConfig loaded;
  parse_config(input, "fuzz.toml", loaded);
  for (const ConfigProblem& problem : loaded.problems) {
    require(problem.position.file == "fuzz.toml" && problem.position.line > 0);
    require(!problem.message.empty());
  }
  const Config& config = loaded.config;
  require(config.rescan >= Milliseconds(50) && config.rescan <= Milliseconds(1000));
  require(config.socket.starts_with('/'));
  check_policy(config.defaults);
  for (const TenantRule& rule : config.tenants) {
    require(check_cgroup_path(rule.cgroup).ok());
    require(find_rule(config, rule.cgroup) != nullptr);
    check_policy(rule.settings);
  }
  for (const auto& [name, setting] : config.module)
    require(name.find('/') == std::string::npos && setting.value.find('\n') == std::string::npos);
}

}  // namespace
}  // namespace memsluice

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  memsluice::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
