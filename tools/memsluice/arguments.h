// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/base/json.h"
#include "daemon/base/result.h"
#include "tools/memsluice/provision/plan.h"

namespace memsluice {

// How long a census of some TiB may take.
inline constexpr Milliseconds kCensusPatience{300000};

// What is one method of the API, and no more.
struct CallCommand {
  std::string method;
  Json params = Json::object();
  Milliseconds patience{0};  // for what takes longer than others; 0: no longer
};

// What begins a request, and waits for its end.
struct MigrateCommand {
  Json params;
  bool detach = false;
  std::string method = "migrate";
  Json tenant_set = {};  // params of tenant.set, which is called before; null: it is not
};

// engine.test or engine.drain for one queue after the other.
struct EngineQueuesCommand {
  std::string method;
  std::vector<Json> queues;  // params of the calls; none: all that there are
};

struct EngineResetCommand {
  std::string device;
  bool yes = false;
};

struct ChannelRemoveCommand {
  Json params;  // with a deadline_ms
};

struct TopCommand {
  bool once = false;
  Milliseconds interval{1000};
};

struct DoctorCommand {
  std::string root = "/";
};

struct ProvisionCommand {
  std::optional<provision::Wish> wish = {};  // none: only look
  std::string directory = {};                // empty: write nothing
  std::string root = "/";
};

struct VersionCommand {};

struct HelpCommand {
  std::string text;
};

struct Invocation {
  std::variant<CallCommand, MigrateCommand, EngineQueuesCommand, EngineResetCommand,
               ChannelRemoveCommand, TopCommand, DoctorCommand, ProvisionCommand, VersionCommand,
               HelpCommand>
      command;
  bool json = false;
  std::string socket;
};

// Without the name of the program. What is wrong is a kBadRequest whose object is the option or
// argument that it is about.
Result<Invocation> parse_arguments(const std::vector<std::string>& arguments);

// The name by which the API knows a cgroup: "redis.slice", "/redis.slice/" and
// "/sys/fs/cgroup/redis.slice" are all "/redis.slice".
Result<std::string> parse_cgroup(std::string_view text);

}  // namespace memsluice
