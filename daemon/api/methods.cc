// SPDX-License-Identifier: GPL-2.0
#include "daemon/api/methods.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <string_view>

#include "daemon/api/wire.h"
#include "daemon/host/numa.h"

namespace memsluice {
namespace {

constexpr uint64_t kPidMax = 1 << 22;
constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kWaitMsMax = 24 * 60 * 60 * 1000;
constexpr uint64_t kPhysicalMax = (uint64_t{1} << 52) - 1;

Result<void> no_params(const Json& params) {
  return ObjectReader(params).finish();
}

std::string require_text(ObjectReader& reader, const char* key) {
  return reader.require(key, reader.text(key));
}

uint64_t require_number(ObjectReader& reader, const char* key, uint64_t low, uint64_t high) {
  return reader.require(key, reader.number(key, low, high));
}

int require_node(ObjectReader& reader, const char* key) {
  return static_cast<int>(require_number(reader, key, 0, kNodeIdMax));
}

std::optional<uint32_t> read_rate(ObjectReader& reader, const char* key) {
  auto rate = reader.number(key, 0, MEMSLUICE_MIB_PER_S_MAX);
  return rate ? std::optional(static_cast<uint32_t>(*rate)) : std::nullopt;
}

Result<void> read_placement(const std::optional<std::string>& channels,
                            std::optional<uint64_t> granule_bytes, PolicySettings& settings) {
  if (channels) {
    if (is_channel_change(*channels)) {
      auto change = parse_channel_change(*channels);
      if (!change.ok()) return std::move(change).error();
      settings.channel_change = *std::move(change);
    } else {
      auto parsed = parse_channels(*channels);
      if (!parsed.ok()) return std::move(parsed).error();
      settings.channels = *std::move(parsed);
    }
  }
  if (granule_bytes) {
    auto order = granule_order(*granule_bytes);
    if (!order.ok()) return std::move(order).error();
    settings.granule_order = *order;
  }
  return {};
}

Json wrapped(const char* name, Json value) {
  return {{name, std::move(value)}};
}

template <typename T>
Result<Json> wrapped(const char* name, const Result<T>& result) {
  if (!result.ok()) return result.error();
  return wrapped(name, to_json(*result));
}

// Nobody waits for the answer any more when `later` is gone; what was begun goes on.
template <typename T>
Engines::Reply<T> answer_with(const char* name, const std::shared_ptr<Methods::Reply>& later) {
  return [name, waiting = std::weak_ptr(later)](const Result<T>& result) {
    if (auto reply = waiting.lock()) (*reply)(wrapped(name, result));
  };
}

Methods::Pending refuse(const Error& error, const Methods::Reply& reply) {
  reply(error);
  return nullptr;
}

}  // namespace

struct Methods::Method {
  using Run = Result<Json> (Methods::*)(const Json& params);
  using RunLater = Pending (Methods::*)(const Json& params, const Reply& reply);

  constexpr Method(std::string_view method, bool only_reads, Run now)
      : name(method), read(only_reads), run(now) {}
  constexpr Method(std::string_view method, bool only_reads, RunLater later)
      : name(method), read(only_reads), run_later(later) {}

  std::string_view name;
  bool read;
  // One of the two.
  Run run = nullptr;
  RunLater run_later = nullptr;
};

const Methods::Method* Methods::find(const std::string& name) {
  static constexpr std::array kMethods = {
      Method{"status", true, &Methods::status},
      Method{"tenant.list", true, &Methods::tenant_list},
      Method{"tenant.get", true, &Methods::tenant_get},
      Method{"tenant.set", false, &Methods::tenant_set},
      Method{"tenant.clear", false, &Methods::tenant_clear},
      Method{"migrate", false, &Methods::migrate},
      Method{"redistribute", false, &Methods::redistribute},
      Method{"request.list", true, &Methods::request_list},
      Method{"request.get", true, &Methods::request_get},
      Method{"request.cancel", false, &Methods::request_cancel},
      Method{"request.wait", true, &Methods::request_wait},
      Method{"config.reload", false, &Methods::config_reload},
      Method{"counters", true, &Methods::counters},
      Method{"engine.list", true, &Methods::engine_list},
      Method{"engine.test", false, &Methods::engine_test},
      Method{"engine.drain", false, &Methods::engine_drain},
      Method{"engine.reset", false, &Methods::engine_reset},
      Method{"metrics", true, &Methods::metrics},
      // Nothing changes, but who asks makes the kernel look at all of its memory.
      Method{"census", false, &Methods::census},
      Method{"channel.list", true, &Methods::channel_list},
      Method{"channel.add", false, &Methods::channel_add},
      Method{"channel.remove", false, &Methods::channel_remove},
  };
  for (const Method& method : kMethods)
    if (method.name == name) return &method;
  return nullptr;
}

Methods::Methods(Module& module, Tenants& tenants, Migrations& migrations, Upkeep& upkeep,
                 Engines& engines, Census& census, Channels& channels, Bandwidth& bandwidth,
                 Metrics& metrics, EventLoop& loop, const Clock& clock, const Paths& paths,
                 const DaemonFacts& facts, Reload reload)
    : module_(module),
      tenants_(tenants),
      migrations_(migrations),
      upkeep_(upkeep),
      engines_(engines),
      census_(census),
      channels_(channels),
      bandwidth_(bandwidth),
      metrics_(metrics),
      loop_(loop),
      clock_(clock),
      paths_(paths),
      facts_(facts),
      reload_(std::move(reload)) {}

Methods::Pending Methods::call(const Request& request, bool may_change, const Reply& reply) {
  if (request.method == "hello") {
    reply(hello(request.params, may_change));
    return nullptr;
  }
  const Method* method = find(request.method);
  if (method == nullptr) {
    reply(Error{.code = ErrorCode::kUnknownMethod,
                .object = request.method,
                .message = "no such method",
                .hint = "docs/api.md has them all; hello tells the version of the API"});
  } else if (!method->read && !may_change) {
    reply(
        Error{.code = ErrorCode::kDenied,
              .object = request.method,
              .message = "you may look but not change",
              .hint = fmt::format("be root or a member of the group {}", tenants_.config().group)});
  } else if (method->run_later != nullptr) {
    return (this->*method->run_later)(request.params, reply);
  } else {
    reply((this->*method->run)(request.params));
  }
  return nullptr;
}

Result<Json> Methods::hello(const Json& params, bool may_change) {
  if (auto checked = no_params(params); !checked.ok()) return checked.error();
  return Json{
      {"version", facts_.version}, {"api_version", kApiVersion}, {"may_change", may_change}};
}

Result<Json> Methods::status(const Json& params) {
  if (auto checked = no_params(params); !checked.ok()) return checked.error();
  const auto uptime =
      std::chrono::duration_cast<std::chrono::seconds>(clock_.monotonic() - facts_.started);
  auto nodes = read_numa_nodes(paths_);
  auto tenants = tenants_.list();
  return Json{{"daemon",
               {{"version", facts_.version},
                {"uptime_s", uptime.count()},
                {"config_path", facts_.config_path},
                {"config_loaded_unix_s", facts_.config_loaded_unix_s}}},
              {"module", to_json(module_.info())},
              {"nodes", nodes.ok() ? to_json(*nodes) : Json::array()},
              {"tenants", tenants.ok() ? to_json(*tenants) : Json::array()}};
}

Result<Json> Methods::tenant_list(const Json& params) {
  if (auto checked = no_params(params); !checked.ok()) return checked.error();
  return wrapped("tenants", tenants_.list());
}

Result<Json> Methods::tenant_get(const Json& params) {
  ObjectReader reader(params);
  std::string cgroup = require_text(reader, "cgroup");
  if (auto checked = reader.finish(); !checked.ok()) return checked.error();
  return wrapped("tenant", tenants_.get(cgroup));
}

Result<Json> Methods::tenant_set(const Json& params) {
  ObjectReader reader(params);
  std::string cgroup = require_text(reader, "cgroup");
  PolicySettings settings;
  settings.tiering = reader.boolean("tiering");
  if (auto bytes = reader.number_or_null("fast_limit_bytes", MEMSLUICE_NO_LIMIT))
    settings.fast_limit = FastLimit{.bytes = *bytes};
  settings.promote_mib_per_s = read_rate(reader, "promote_mib_per_s");
  settings.demote_mib_per_s = read_rate(reader, "demote_mib_per_s");
  const auto channels = reader.text("channels");
  const auto granule_bytes = reader.number("granule_bytes", 0, kAny);
  if (auto checked = reader.finish(); !checked.ok()) return checked.error();
  if (auto read = read_placement(channels, granule_bytes, settings); !read.ok())
    return read.error();
  return wrapped("tenant", tenants_.set(cgroup, settings));
}

Result<Json> Methods::tenant_clear(const Json& params) {
  ObjectReader reader(params);
  std::string cgroup = require_text(reader, "cgroup");
  if (auto checked = reader.finish(); !checked.ok()) return checked.error();
  if (auto cleared = tenants_.clear(cgroup); !cleared.ok()) return cleared.error();
  return Json::object();
}

Result<Json> Methods::migrate(const Json& params) {
  ObjectReader reader(params);
  if (!reader.has("pid") && !reader.has("cgroup"))
    return Error{.code = ErrorCode::kBadRequest,
                 .object = "pid",
                 .message = "is missing",
                 .hint = "name a pid, or a cgroup and a source_node"};
  const int target_node = require_node(reader, "target_node");
  if (reader.has("cgroup")) {
    const TenantMigration migration{.cgroup = require_text(reader, "cgroup"),
                                    .source_node = require_node(reader, "source_node"),
                                    .target_node = target_node,
                                    .mib_per_s = read_rate(reader, "mib_per_s").value_or(0)};
    if (auto checked = reader.finish(); !checked.ok()) return checked.error();
    return wrapped("request", migrations_.start(migration));
  }
  ProcessMigration migration{.pid = static_cast<int>(require_number(reader, "pid", 1, kPidMax)),
                             .address = reader.number("address", 0, kAny),
                             .length_bytes = reader.number("length_bytes", 0, kAny),
                             .target_node = target_node,
                             .all_mappings = reader.boolean("all_mappings").value_or(false),
                             .mib_per_s = read_rate(reader, "mib_per_s").value_or(0)};
  if (auto checked = reader.finish(); !checked.ok()) return checked.error();
  return wrapped("request", migrations_.start(migration));
}

Result<Json> Methods::redistribute(const Json& params) {
  ObjectReader reader(params);
  Redistribution redistribution{.cgroup = require_text(reader, "cgroup"),
                                .on_touch = reader.boolean("on_touch").value_or(false),
                                .mib_per_s = read_rate(reader, "mib_per_s").value_or(0)};
  if (auto node = reader.number("source_node", 0, kNodeIdMax))
    redistribution.source_node = static_cast<int>(*node);
  if (auto checked = reader.finish(); !checked.ok()) return checked.error();
  if (redistribution.on_touch && redistribution.mib_per_s != 0)
    return Error{.code = ErrorCode::kBadRequest,
                 .object = "mib_per_s",
                 .message = "goes not with on_touch: pages move when they are touched"};
  if (auto tenant = tenants_.get(redistribution.cgroup); tenant.ok())
    upkeep_.make_way(tenant->cgroup.id, redistribution.on_touch);
  return wrapped("request", migrations_.start(redistribution));
}

Result<Json> Methods::request_list(const Json& params) {
  if (auto checked = no_params(params); !checked.ok()) return checked.error();
  return wrapped("requests", to_json(migrations_.list()));
}

Result<Json> Methods::request_get(const Json& params) {
  ObjectReader reader(params);
  const uint64_t id = require_number(reader, "id", 0, kAny);
  if (auto checked = reader.finish(); !checked.ok()) return checked.error();
  return wrapped("request", migrations_.get(id));
}

Result<Json> Methods::request_cancel(const Json& params) {
  ObjectReader reader(params);
  const uint64_t id = require_number(reader, "id", 0, kAny);
  if (auto checked = reader.finish(); !checked.ok()) return checked.error();
  return wrapped("request", migrations_.cancel(id));
}

Result<Json> Methods::config_reload(const Json& params) {
  if (auto checked = no_params(params); !checked.ok()) return checked.error();
  auto changed = reload_();
  if (!changed.ok()) return std::move(changed).error();
  return wrapped("changed", Json(*changed));
}

Result<Json> Methods::counters(const Json& params) {
  ObjectReader reader(params);
  const auto samples = reader.number("samples", 0, Bandwidth::kSamplesMax).value_or(1);
  if (auto checked = reader.finish(); !checked.ok()) return checked.error();
  const LostTimes* lost = tenants_.lost_times();
  const bool fails = lost != nullptr && lost->error();
  return Json{{"counters", to_json(bandwidth_, samples)},
              {"lost_time",
               {{"wanted", lost != nullptr && lost->wanted()},
                {"error", fails ? error_to_json(*lost->error()) : Json(nullptr)}}}};
}

Methods::Pending Methods::request_wait(const Json& params, const Reply& reply) {
  ObjectReader reader(params);
  const uint64_t id = require_number(reader, "id", 0, kAny);
  auto timeout_ms = reader.number("timeout_ms", 0, kWaitMsMax);
  if (auto checked = reader.finish(); !checked.ok()) {
    reply(checked.error());
    return nullptr;
  }
  auto request = migrations_.get(id);
  if (!request.ok() || request->has_ended() || timeout_ms == 0u) {
    reply(wrapped("request", request));
    return nullptr;
  }

  struct Wait {
    Migrations::Waiter waiter;
    EventLoop::Timer timeout;
  };
  auto wait = std::make_shared<Wait>();
  auto answer = [this, id, reply] { reply(wrapped("request", migrations_.get(id))); };
  wait->waiter = migrations_.when_ended(id, answer);
  if (timeout_ms) wait->timeout = loop_.once(Milliseconds(*timeout_ms), answer);
  return wait;
}

Methods::Pending Methods::engine_list(const Json& params, const Reply& reply) {
  auto checked = no_params(params);
  if (!checked.ok()) return refuse(checked.error(), reply);
  auto later = std::make_shared<Reply>(reply);
  auto begun = engines_.list(answer_with<std::vector<EngineInfo>>("engines", later));
  return begun.ok() ? later : refuse(begun.error(), reply);
}

Methods::Pending Methods::engine_act(const Json& params, memsluice_engine_action action,
                                     const Reply& reply) {
  ObjectReader reader(params);
  const QueueName name{.engine = reader.text("engine").value_or(""),
                       .queue = require_text(reader, "queue")};
  if (auto checked = reader.finish(); !checked.ok()) return refuse(checked.error(), reply);
  auto later = std::make_shared<Reply>(reply);
  auto begun = engines_.act(name, action, answer_with<QueueName>("queue", later));
  return begun.ok() ? later : refuse(begun.error(), reply);
}

Methods::Pending Methods::engine_test(const Json& params, const Reply& reply) {
  return engine_act(params, MEMSLUICE_ENGINE_TEST, reply);
}

Methods::Pending Methods::engine_drain(const Json& params, const Reply& reply) {
  return engine_act(params, MEMSLUICE_ENGINE_DRAIN, reply);
}

Methods::Pending Methods::engine_reset(const Json& params, const Reply& reply) {
  ObjectReader reader(params);
  const std::string device = require_text(reader, "device");
  if (auto checked = reader.finish(); !checked.ok()) return refuse(checked.error(), reply);
  auto later = std::make_shared<Reply>(reply);
  auto begun = engines_.reset(device, tenants_.config().dsa_configuration,
                              answer_with<DsaResetOutcome>("reset", later));
  return begun.ok() ? later : refuse(begun.error(), reply);
}

Methods::Pending Methods::metrics(const Json& params, const Reply& reply) {
  if (auto checked = no_params(params); !checked.ok()) return refuse(checked.error(), reply);
  auto later = std::make_shared<Reply>(reply);
  metrics_.collect([waiting = std::weak_ptr(later)](const std::string& text) {
    if (auto answer = waiting.lock()) (*answer)(wrapped("text", Json(text)));
  });
  return later;
}

Methods::Pending Methods::census(const Json& params, const Reply& reply) {
  ObjectReader reader(params);
  const auto node = reader.number("node", 0, kNodeIdMax);
  const bool tenants = reader.boolean("by_tenant").value_or(false);
  if (auto checked = reader.finish(); !checked.ok()) return refuse(checked.error(), reply);
  auto later = std::make_shared<Reply>(reply);
  auto answer = answer_with<std::vector<CensusLine>>("census", later);
  auto begun = census_.take(
      node ? std::optional(static_cast<int>(*node)) : std::nullopt,
      [tenants, answer = std::move(answer)](const Result<std::vector<CensusLine>>& lines) {
        answer(tenants && lines.ok() ? by_tenant(*lines) : lines);
      });
  return begun.ok() ? later : refuse(begun.error(), reply);
}

Result<Json> Methods::channel_list(const Json& params) {
  if (auto checked = no_params(params); !checked.ok()) return checked.error();
  return wrapped("channels", channels_.list());
}

Methods::Pending Methods::channel_add(const Json& params, const Reply& reply) {
  ObjectReader reader(params);
  ChannelSpec spec{.name = require_text(reader, "name"),
                   .group = reader.text("group").value_or("")};
  if (const auto node = reader.number("node", 0, kNodeIdMax)) spec.node = static_cast<int>(*node);
  spec.start = reader.number("start", 0, kPhysicalMax).value_or(0);
  spec.length_bytes = reader.number("length_bytes", 1, kPhysicalMax).value_or(0);
  if (auto checked = reader.finish(); !checked.ok()) return refuse(checked.error(), reply);
  const bool has_start = reader.has("start"), has_length = reader.has("length_bytes");
  if (has_start != has_length || (!has_start && !spec.node))
    return refuse({.code = ErrorCode::kBadRequest,
                   .object = has_start    ? "length_bytes"
                             : has_length ? "start"
                                          : "node",
                   .message = "is missing",
                   .hint = "name a node that has memory, or start and length_bytes of memory that "
                           "is withheld"},
                  reply);
  auto later = std::make_shared<Reply>(reply);
  auto begun = channels_.add(spec, answer_with<memsluice_channel_status>("channel", later));
  return begun.ok() ? later : refuse(begun.error(), reply);
}

Methods::Pending Methods::channel_remove(const Json& params, const Reply& reply) {
  ObjectReader reader(params);
  const std::string name = require_text(reader, "name");
  const auto deadline_ms = reader.number("deadline_ms", 1, MEMSLUICE_REMOVE_DEADLINE_MS_MAX);
  if (auto checked = reader.finish(); !checked.ok()) return refuse(checked.error(), reply);
  const Milliseconds deadline = deadline_ms ? Milliseconds(*deadline_ms) : kRemoveDeadlineDefault;
  auto later = std::make_shared<Reply>(reply);
  auto begun = channels_.remove(name, deadline, answer_with<RemovedChannel>("removed", later));
  return begun.ok() ? later : refuse(begun.error(), reply);
}

}  // namespace memsluice
