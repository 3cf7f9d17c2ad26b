// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "daemon/base/units.h"
#include "daemon/host/numa.h"
#include "daemon/host/placement.h"
#include "tools/memsluice/help.h"
#include "uapi/memsluice.h"

namespace memsluice {
namespace {

constexpr uint64_t kPidMax = 1 << 22;
constexpr size_t kCgroupBytesMax = 4095;
// A TiB comes in seconds, on a busy host in more of them.
constexpr Milliseconds kChannelPatience{300000};
constexpr std::string_view kCgroupMount = "/sys/fs/cgroup";

Error usage(std::string object, std::string message, std::string hint = {}) {
  return {.code = ErrorCode::kBadRequest,
          .object = std::move(object),
          .message = std::move(message),
          .hint = std::move(hint)};
}

Error renamed(Error error, const char* object) {
  error.object = object;
  return error;
}

// CLI11 only splits the arguments: what they mean is checked here, in words of our own.
struct Texts {
  bool json = false, all_mappings = false, detach = false, once = false, yes = false,
       tenants = false, lazily = false;
  std::string socket, cgroup, id, tiering, fast_limit, promote, demote, pid, address, length,
      tenant, from, to, interval = "1", root = "/", device, node, channels, granule, add, remove,
                        rate, channel, group, start, deadline = "60", channel_count, host,
                        use = "nodes", directory;
  std::vector<std::string> queues, ranges, nodes;
};

CLI::App* add_command(CLI::App* parent, const char* name, const char* description,
                      const char* footer) {
  CLI::App* command = parent->add_subcommand(name, description);
  command->fallthrough()->footer(footer);
  return command;
}

CLI::App* add_group(CLI::App* parent, const char* name, const char* description,
                    const char* footer) {
  return add_command(parent, name, description, footer)->require_subcommand(0, 1);
}

void add_text(CLI::App* command, const char* name, std::string& value, const char* type,
              const char* description) {
  command->add_option(name, value, description)->type_name(type);
}

void add_channels_options(CLI::App* channels, Texts& texts) {
  add_text(channels, "--set", texts.channels, "NODE:WEIGHT,...", "these and no others");
  add_text(channels, "--add", texts.add, "NODE:WEIGHT,...", "more, or with other weights");
  add_text(channels, "--remove", texts.remove, "NODE,...", "no more these");
  add_text(channels, "--from", texts.from, "NODE", "only what is on this node");
  add_text(channels, "--mib-per-s", texts.rate, "N", "move no faster");
  channels->add_flag("--lazily", texts.lazily, "move each page when it is touched next");
  channels->add_flag("--detach", texts.detach, "begin it, and do not wait for its end");
}

void add_tenant_commands(CLI::App* app, Texts& texts) {
  CLI::App* tenant = add_group(app, "tenant", "look at and change tenants", help::kTenant);
  add_command(tenant, "list", "one line for each tenant", help::kTenantList);
  CLI::App* show = add_command(tenant, "show", "everything about one tenant", help::kTenantShow);
  CLI::App* set =
      add_command(tenant, "set", "make a tenant, or change its policy", help::kTenantSet);
  CLI::App* clear = add_command(tenant, "clear", "take back a policy", help::kTenantClear);
  CLI::App* channels = add_command(
      tenant, "channels", "change its channels, and bring its pages there", help::kTenantChannels);
  for (CLI::App* command : {show, set, clear, channels}) {
    add_text(command, "CGROUP", texts.cgroup, "", "path below the cgroup root, as /redis.slice");
  }
  add_text(set, "--tiering", texts.tiering, "on|off", "move its pages between tiers");
  add_text(set, "--fast-limit", texts.fast_limit, "SIZE|none", "the most it may hold in tier 0");
  add_text(set, "--promote-mib-per-s", texts.promote, "N", "the most to promote; 0: nothing");
  add_text(set, "--demote-mib-per-s", texts.demote, "N", "the most to demote; 0: nothing");
  add_text(set, "--channels", texts.channels, "NODE:WEIGHT,...|none", "where new pages lie");
  add_text(set, "--granule", texts.granule, "SIZE", "what lies together; 2M if not said");
  add_channels_options(channels, texts);
}

void add_migrate_command(CLI::App* app, Texts& texts) {
  CLI::App* migrate = add_command(app, "migrate", "move pages to a node", help::kMigrate);
  add_text(migrate, "--pid", texts.pid, "PID", "the pages of this process");
  add_text(migrate, "--address", texts.address, "ADDRESS", "from here on; with --length");
  add_text(migrate, "--length", texts.length, "SIZE", "so much; with --address");
  add_text(migrate, "--tenant", texts.tenant, "CGROUP", "the pages of this tenant; with --from");
  add_text(migrate, "--from", texts.from, "NODE", "those on this node; with --tenant");
  add_text(migrate, "--to", texts.to, "NODE", "where they go");
  add_text(migrate, "--mib-per-s", texts.rate, "N", "move no faster");
  migrate->add_flag("--all-mappings", texts.all_mappings,
                    "also pages that other processes map; with --pid");
  migrate->add_flag("--detach", texts.detach, "begin it, and do not wait for its end");
}

void add_request_commands(CLI::App* app, Texts& texts) {
  CLI::App* request = add_group(app, "request", "look at and cancel migrations", help::kRequest);
  add_command(request, "list", "those that run, and the last that ended", help::kRequestList);
  CLI::App* show = add_command(request, "show", "one request", help::kRequestShow);
  CLI::App* cancel = add_command(request, "cancel", "stop a request", help::kRequestCancel);
  for (CLI::App* command : {show, cancel}) add_text(command, "ID", texts.id, "", "its number");
}

void add_engine_commands(CLI::App* app, Texts& texts) {
  CLI::App* engine = add_group(app, "engine", "look at and mend copy engines", help::kEngine);
  add_command(engine, "list", "copy engines and their queues", help::kEngineList);
  CLI::App* test = add_command(engine, "test", "copy and compare", help::kEngineTest);
  CLI::App* drain = add_command(engine, "drain", "copy no more through it", help::kEngineDrain);
  for (CLI::App* command : {test, drain}) {
    command->add_option("QUEUE", texts.queues, "as engine list shows it")->type_name("");
  }
  CLI::App* reset = add_command(engine, "reset", "reset a DSA device", help::kEngineReset);
  add_text(reset, "DEVICE", texts.device, "", "its name in idxd, as dsa0");
  reset->add_flag("--yes", texts.yes, "do not ask");
}

void add_census_command(CLI::App* app, Texts& texts) {
  CLI::App* census = add_command(app, "census", "who has which pages on which node", help::kCensus);
  add_text(census, "--node", texts.node, "NODE", "of this node only");
  census->add_flag("--tenants", texts.tenants, "one line for each tenant, not for each cgroup");
}

void add_channel_commands(CLI::App* app, Texts& texts) {
  CLI::App* channel = add_group(app, "channel", "look at and make memory channels", help::kChannel);
  add_command(channel, "list", "one line for each channel", help::kChannelList);
  CLI::App* add = add_command(channel, "add", "name a node, or make one", help::kChannelAdd);
  CLI::App* remove = add_command(channel, "remove", "take it away again", help::kChannelRemove);
  for (CLI::App* command : {add, remove}) add_text(command, "NAME", texts.channel, "", "its name");
  add_text(add, "--node", texts.node, "NODE", "the node; with memory: which it shall become");
  add_text(add, "--start", texts.start, "ADDRESS", "of memory that is withheld; with --length");
  add_text(add, "--length", texts.length, "SIZE", "so much; with --start");
  add_text(add, "--group", texts.group, "GROUP", "what it belongs to");
  add_text(remove, "--deadline", texts.deadline, "SECONDS", "then all stays as it was: 1 to 3600");
}

void add_list(CLI::App* command, const char* name, std::vector<std::string>& values,
              const char* type, const char* description) {
  command->add_option(name, values, description)->type_name(type)->allow_extra_args(false);
}

void add_provision_command(CLI::App* app, Texts& texts) {
  CLI::App* provision =
      add_command(app, "provision", "find memory channels, and boot with them", help::kProvision);
  add_text(provision, "--channels", texts.channel_count, "N", "the last N that the evidence shows");
  add_list(provision, "--range", texts.ranges, "START+LENGTH", "a channel; may be repeated");
  add_list(provision, "--node", texts.nodes, "NODE", "a channel that is a node; may be repeated");
  add_text(provision, "--host", texts.host, "SIZE", "what the host keeps at least; 4G if not said");
  add_text(provision, "--for", texts.use, "nodes|devices", "what channels become; nodes");
  add_text(provision, "--write", texts.directory, "DIRECTORY", "write the files to it");
  add_text(provision, "--root", texts.root, "DIR", "");
  provision->get_option("--root")->group("");
}

bool is_group(const std::string& command) {
  return command == "tenant" || command == "request" || command == "engine" || command == "channel";
}

void add_commands(CLI::App* app, Texts& texts) {
  app->fallthrough()->require_subcommand(0, 1)->footer(help::kMain);
  app->add_flag("--json", texts.json, "print one JSON object instead of text");
  add_text(app, "--socket", texts.socket, "PATH", "the daemon's socket, if not the usual one");
  app->set_version_flag("--version", "memsluice " MEMSLUICE_VERSION);

  add_command(app, "status", "the daemon, the module, all nodes and tenants", help::kStatus);
  add_tenant_commands(app, texts);
  add_migrate_command(app, texts);
  add_request_commands(app, texts);
  add_engine_commands(app, texts);
  add_census_command(app, texts);
  add_channel_commands(app, texts);
  add_provision_command(app, texts);
  add_command(app, "metrics", "what Prometheus is told, as text", help::kMetrics);
  CLI::App* top = add_command(app, "top", "live view of tenants and nodes", help::kTop);
  top->add_flag("--once", texts.once, "one picture, then end");
  add_text(top, "--interval", texts.interval, "SECONDS", "between two pictures: 0.1 to 3600");
  add_command(app, "reload", "have the daemon read its configuration again", help::kReload);
  CLI::App* doctor = add_command(app, "doctor", "find out what is wrong here", help::kDoctor);
  add_text(doctor, "--root", texts.root, "DIR", "");
  doctor->get_option("--root")->group("");
  add_command(app, "version", "versions of command, daemon and module", help::kVersion);
}

std::vector<std::string> chosen_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    names.push_back(at->get_name());
  }
  return names;
}

std::string help_command(const std::vector<std::string>& names) {
  std::string command = "memsluice ";
  for (const std::string& name : names) command += name + ' ';
  return command + "--help";
}

// What CLI11 says is wrong, in the form of all other messages.
Error unexpected(const std::string& argument, const std::vector<std::string>& names) {
  const bool group = names.size() == 1 && is_group(names[0]);
  std::string message = names.empty() || group ? "no such command" : "one argument too many";
  if (argument.starts_with('-')) message = "no such option";
  return usage(argument, message, help_command(names));
}

Error wrong_value(const CLI::ParseError& error, const char* message,
                  const std::vector<std::string>& names) {
  const std::string hint = help_command(names);
  const std::string_view what = error.what();
  const size_t start = what.find("--");
  if (start == what.npos) return usage("arguments", std::string(what), hint);
  const std::string option(what.substr(start, what.find_first_of(" :,", start) - start));
  return usage(option, message, hint);
}

Result<uint64_t> option_number(const char* option, const std::string& text, uint64_t low,
                               uint64_t high) {
  auto value = parse_number(text, low, high);
  if (value.ok()) return value;
  return usage(option, fmt::format("\"{}\" is no whole number from {} to {}", text, low, high));
}

Result<uint64_t> option_bytes(const char* option, const std::string& text) {
  auto bytes = parse_bytes(text);
  if (bytes.ok() && *bytes > 0) return bytes;
  return usage(option, fmt::format("\"{}\" is no size", text), "write it as 512M, 2G or 4096");
}

Result<uint64_t> option_address(const char* option, const std::string& text, const char* hint) {
  std::string_view digits = text;
  const int base = digits.starts_with("0x") || digits.starts_with("0X") ? 16 : 10;
  if (base == 16) digits.remove_prefix(2);
  uint64_t address = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, address, base);
  if (error == std::errc() && stop == end) return address;
  return usage(option, fmt::format("\"{}\" is no address", text), hint);
}

Result<Milliseconds> option_interval(const std::string& text) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  if (error == std::errc() && stop == end && seconds >= 0.1 && seconds <= 3600) {
    return Milliseconds(std::lround(seconds * 1000));
  }
  return usage("--interval", fmt::format("\"{}\" is no number of seconds from 0.1 to 3600", text));
}

// Adds a member to params if the option was given.
Result<void> add_number(Json& params, const char* key, const char* option, const std::string& text,
                        uint64_t high) {
  if (text.empty()) return {};
  auto value = option_number(option, text, 0, high);
  if (!value.ok()) return value.error();
  params[key] = *value;
  return {};
}

Result<void> add_channels(Json& params, const char* option, const std::string& text) {
  if (text.empty()) return {};
  if (is_channel_change(text)) {
    auto change = parse_channel_change(text);
    if (!change.ok()) return renamed(std::move(change).error(), option);
  } else {
    auto channels = parse_channels(text);
    if (!channels.ok()) return renamed(std::move(channels).error(), option);
  }
  params["channels"] = text;
  return {};
}

Result<void> add_placement(Json& params, const Texts& texts) {
  if (auto added = add_channels(params, "--channels", texts.channels); !added.ok())
    return added.error();
  if (!texts.granule.empty()) {
    auto order = parse_granule(texts.granule);
    if (!order.ok()) return renamed(std::move(order).error(), "--granule");
    params["granule_bytes"] = granule_bytes(*order);
  }
  return {};
}

Result<CallCommand> tenant_set(const Texts& texts, Json params) {
  if (!texts.tiering.empty()) {
    if (texts.tiering != "on" && texts.tiering != "off") {
      return usage("--tiering", fmt::format("\"{}\" is neither on nor off", texts.tiering));
    }
    params["tiering"] = texts.tiering == "on";
  }
  if (texts.fast_limit == "none") {
    params["fast_limit_bytes"] = nullptr;
  } else if (!texts.fast_limit.empty()) {
    auto bytes = parse_bytes(texts.fast_limit);
    if (!bytes.ok()) {
      return usage("--fast-limit", fmt::format("\"{}\" is no size", texts.fast_limit),
                   "write it as 512M, 2G or 4096, or none");
    }
    params["fast_limit_bytes"] = *bytes;
  }
  constexpr uint64_t kMax = MEMSLUICE_MIB_PER_S_MAX;
  for (const auto& [key, option, value] :
       {std::tuple{"promote_mib_per_s", "--promote-mib-per-s", &texts.promote},
        std::tuple{"demote_mib_per_s", "--demote-mib-per-s", &texts.demote}}) {
    if (auto added = add_number(params, key, option, *value, kMax); !added.ok())
      return added.error();
  }
  if (auto added = add_placement(params, texts); !added.ok()) return added.error();
  return CallCommand{"tenant.set", std::move(params)};
}

// "3:2,4" and "1" are "+3:2,+4,-1".
std::string signed_channels(const Texts& texts) {
  std::string change;
  for (const auto& [sign, list] : {std::pair('+', &texts.add), std::pair('-', &texts.remove)}) {
    for (std::string_view rest = *list; !rest.empty();) {
      const size_t end = std::min(rest.find(','), rest.size());
      if (!change.empty()) change += ',';
      change += sign;
      change += rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return change;
}

Result<Json> new_channels(const Texts& texts, const std::string& cgroup) {
  const std::string change = signed_channels(texts);
  if (change.empty() && texts.channels.empty()) return Json();
  if (!change.empty() && !texts.channels.empty())
    return usage("--set", "goes not with --add or --remove");
  Json params = {{"cgroup", cgroup}};
  const char* option = texts.remove.empty() ? "--add" : "--add, --remove";
  auto added = change.empty() ? add_channels(params, "--set", texts.channels)
                              : add_channels(params, option, change);
  if (!added.ok()) return added.error();
  return params;
}

Result<MigrateCommand> channels_command(const Texts& texts) {
  if (texts.cgroup.empty())
    return usage("CGROUP", "is missing", "memsluice tenant channels --help");
  auto cgroup = parse_cgroup(texts.cgroup);
  if (!cgroup.ok()) return cgroup.error();
  auto channels = new_channels(texts, *cgroup);
  if (!channels.ok()) return channels.error();
  if (texts.channels == "none")
    return usage("--set", "\"none\" leaves nothing to move to",
                 "memsluice tenant set --channels none");
  if (texts.lazily && !texts.rate.empty())
    return usage("--mib-per-s", "goes not with --lazily: pages move when they are touched");
  MigrateCommand command{{{"cgroup", *cgroup}}, texts.detach, "redistribute", *std::move(channels)};
  if (texts.lazily) command.params["on_touch"] = true;
  for (const auto& [key, option, value, high] :
       {std::tuple{"source_node", "--from", &texts.from, kNodeIdMax},
        std::tuple{"mib_per_s", "--mib-per-s", &texts.rate, uint64_t{MEMSLUICE_MIB_PER_S_MAX}}})
    if (auto added = add_number(command.params, key, option, *value, high); !added.ok())
      return added.error();
  return command;
}

Result<CallCommand> tenant_command(const std::string& name, const Texts& texts) {
  if (name == "list") return CallCommand{"tenant.list"};
  if (texts.cgroup.empty()) {
    return usage("CGROUP", "is missing", fmt::format("memsluice tenant {} --help", name));
  }
  auto cgroup = parse_cgroup(texts.cgroup);
  if (!cgroup.ok()) return cgroup.error();
  Json params = {{"cgroup", *cgroup}};
  if (name == "show") return CallCommand{"tenant.get", std::move(params)};
  if (name == "clear") return CallCommand{"tenant.clear", std::move(params)};
  return tenant_set(texts, std::move(params));
}

Result<CallCommand> request_command(const std::string& name, const Texts& texts) {
  if (name == "list") return CallCommand{"request.list"};
  if (texts.id.empty()) {
    return usage("ID", "is missing", "memsluice request list shows them");
  }
  auto id = option_number("ID", texts.id, 0, INT64_MAX);
  if (!id.ok()) return id.error();
  return CallCommand{name == "show" ? "request.get" : "request.cancel", {{"id", *id}}};
}

// Which options belong together: the first that is wrong.
Result<void> check_migrate(const Texts& texts) {
  const char* hint = "memsluice migrate --help";
  if (texts.pid.empty() == texts.tenant.empty()) {
    return usage("--pid, --tenant", "say exactly one of the two: whose pages", hint);
  }
  if (texts.to.empty()) return usage("--to", "is missing: the node to move to", hint);
  if (texts.pid.empty()) {
    if (texts.from.empty()) return usage("--from", "is missing: the node to move from", hint);
    if (!texts.address.empty()) return usage("--address", "goes with --pid only", hint);
    if (!texts.length.empty()) return usage("--length", "goes with --pid only", hint);
    if (texts.all_mappings) return usage("--all-mappings", "goes with --pid only", hint);
    return {};
  }
  if (!texts.from.empty()) return usage("--from", "goes with --tenant only", hint);
  if (texts.length.empty() && !texts.address.empty()) return usage("--length", "is missing", hint);
  if (texts.address.empty() && !texts.length.empty()) return usage("--address", "is missing", hint);
  return {};
}

Result<Json> process_range(const Texts& texts) {
  auto pid = option_number("--pid", texts.pid, 1, kPidMax);
  if (!pid.ok()) return pid.error();
  Json params = {{"pid", *pid}};
  if (!texts.address.empty()) {
    auto address = option_address("--address", texts.address,
                                  "write it as in /proc/PID/maps with 0x in front: 0x7f0000000000");
    if (!address.ok()) return address.error();
    auto length = option_bytes("--length", texts.length);
    if (!length.ok()) return length.error();
    params["address"] = *address;
    params["length_bytes"] = *length;
  }
  if (texts.all_mappings) params["all_mappings"] = true;
  return params;
}

Result<Json> tenant_pages(const Texts& texts) {
  auto cgroup = parse_cgroup(texts.tenant);
  if (!cgroup.ok()) return cgroup.error();
  Json params = {{"cgroup", *cgroup}};
  if (auto added = add_number(params, "source_node", "--from", texts.from, kNodeIdMax);
      !added.ok()) {
    return added.error();
  }
  return params;
}

Result<MigrateCommand> migrate_command(const Texts& texts) {
  if (auto checked = check_migrate(texts); !checked.ok()) return checked.error();
  auto params = texts.pid.empty() ? tenant_pages(texts) : process_range(texts);
  if (!params.ok()) return params.error();
  if (auto added = add_number(*params, "target_node", "--to", texts.to, kNodeIdMax); !added.ok()) {
    return added.error();
  }
  auto rate = add_number(*params, "mib_per_s", "--mib-per-s", texts.rate, MEMSLUICE_MIB_PER_S_MAX);
  if (!rate.ok()) return rate.error();
  return MigrateCommand{std::move(*params), texts.detach};
}

Result<Json> queue_params(const std::string& text) {
  const size_t slash = text.find('/');
  const std::string engine = slash == text.npos ? "" : text.substr(0, slash);
  const std::string queue = slash == text.npos ? text : text.substr(slash + 1);
  const auto fits = [](const std::string& name) {
    return !name.empty() && name.size() < MEMSLUICE_ENGINE_NAME_BYTES &&
           name.find('/') == name.npos;
  };
  if (!fits(queue) || (slash != text.npos && !fits(engine))) {
    return usage("QUEUE", fmt::format("\"{}\" is no queue", text),
                 "write it as wq0.0 or, with its engine, as dsa/wq0.0");
  }
  Json params = {{"queue", queue}};
  if (!engine.empty()) params["engine"] = engine;
  return params;
}

Result<EngineQueuesCommand> engine_queues(const std::string& name, const Texts& texts) {
  EngineQueuesCommand command{"engine." + name, {}};
  for (const std::string& queue : texts.queues) {
    auto params = queue_params(queue);
    if (!params.ok()) return params.error();
    command.queues.push_back(std::move(*params));
  }
  if (name == "drain" && command.queues.empty()) {
    return usage("QUEUE", "is missing", "memsluice engine list shows them");
  }
  return command;
}

Result<EngineResetCommand> engine_reset(const Texts& texts) {
  if (texts.device.empty()) {
    return usage("DEVICE", "is missing", "memsluice engine reset --help");
  }
  return EngineResetCommand{texts.device, texts.yes};
}

Result<CallCommand> census_command(const Texts& texts) {
  CallCommand command{"census", Json::object(), kCensusPatience};
  if (!texts.node.empty()) {
    auto added = add_number(command.params, "node", "--node", texts.node, kNodeIdMax);
    if (!added.ok()) return added.error();
  }
  if (texts.tenants) command.params["by_tenant"] = true;
  return command;
}

Result<void> add_withheld(Json& params, const Texts& texts) {
  auto start = option_address("--start", texts.start,
                              "write it as in /proc/iomem with 0x in front: 0x140000000");
  if (!start.ok()) return start.error();
  auto length = option_bytes("--length", texts.length);
  if (!length.ok()) return length.error();
  params["start"] = *start;
  params["length_bytes"] = *length;
  return {};
}

Result<CallCommand> channel_add(const Texts& texts) {
  const char* hint = "memsluice channel add --help";
  if (texts.channel.empty()) return usage("NAME", "is missing", hint);
  if (texts.start.empty() != texts.length.empty())
    return usage(texts.start.empty() ? "--start" : "--length", "is missing", hint);
  if (texts.start.empty() && texts.node.empty())
    return usage("--node, --start", "say which node, or which memory", hint);
  CallCommand command{"channel.add", {{"name", texts.channel}}, kChannelPatience};
  if (!texts.group.empty()) command.params["group"] = texts.group;
  auto added = add_number(command.params, "node", "--node", texts.node, kNodeIdMax);
  if (added.ok() && !texts.start.empty()) added = add_withheld(command.params, texts);
  if (!added.ok()) return added.error();
  return command;
}

Result<ChannelRemoveCommand> channel_remove(const Texts& texts) {
  if (texts.channel.empty())
    return usage("NAME", "is missing", "memsluice channel list shows them");
  auto seconds = option_number("--deadline", texts.deadline, 1, 3600);
  if (!seconds.ok()) return seconds.error();
  return ChannelRemoveCommand{{{"name", texts.channel}, {"deadline_ms", *seconds * 1000}}};
}

Result<provision::Wish> provision_wish(const Texts& texts) {
  provision::Wish wish;
  if (!texts.channel_count.empty()) {
    auto count = option_number("--channels", texts.channel_count, 1, kNodeIdMax);
    if (!count.ok()) return count.error();
    wish.channels = static_cast<unsigned>(*count);
  }
  for (const std::string& text : texts.ranges) {
    auto range = parse_physical_range(text);
    if (!range.ok()) return renamed(std::move(range).error(), "--range");
    wish.ranges.push_back(*range);
  }
  for (const std::string& text : texts.nodes) {
    auto node = option_number("--node", text, 0, kNodeIdMax);
    if (!node.ok()) return node.error();
    wish.nodes.push_back(static_cast<int>(*node));
  }
  if (!texts.host.empty()) {
    auto bytes = option_bytes("--host", texts.host);
    if (!bytes.ok()) return bytes.error();
    wish.host_bytes = *bytes;
  }
  if (texts.use != "nodes" && texts.use != "devices")
    return usage("--for", fmt::format("\"{}\" is neither nodes nor devices", texts.use));
  wish.use = texts.use == "nodes" ? provision::Use::kNodes : provision::Use::kDevices;
  return wish;
}

Result<ProvisionCommand> provision_command(const Texts& texts) {
  ProvisionCommand command{.wish = {}, .directory = texts.directory, .root = texts.root};
  auto wish = provision_wish(texts);
  if (!wish.ok()) return wish.error();
  if (wish->channels || !wish->ranges.empty() || !wish->nodes.empty())
    command.wish = *std::move(wish);
  else if (wish->host_bytes || !texts.directory.empty())
    return usage("provision", "say which channels: --channels, --range or --node",
                 "memsluice provision --help");
  return command;
}

Result<TopCommand> top_command(const Texts& texts) {
  auto interval = option_interval(texts.interval);
  if (!interval.ok()) return interval.error();
  return TopCommand{texts.once, *interval};
}

template <typename Command>
Result<Invocation> invocation(Result<Command> command, const Texts& texts) {
  if (!command.ok()) return command.error();
  return Invocation{std::move(*command), texts.json, texts.socket};
}

Result<Invocation> interpret(const std::vector<std::string>& names, const Texts& texts) {
  const std::string name = names.empty() ? "" : names[0];
  const std::string verb = names.size() < 2 ? "" : names[1];
  if (name.empty() || (is_group(name) && verb.empty())) {
    return usage(name.empty() ? "command" : name, "say what is to be done", help_command(names));
  }
  if (name == "tenant" && verb == "channels") return invocation(channels_command(texts), texts);
  if (name == "tenant") return invocation(tenant_command(verb, texts), texts);
  if (name == "request") return invocation(request_command(verb, texts), texts);
  if (name == "engine" && verb == "list") {
    return invocation(Result(CallCommand{"engine.list"}), texts);
  }
  if (name == "engine" && verb == "reset") return invocation(engine_reset(texts), texts);
  if (name == "engine") return invocation(engine_queues(verb, texts), texts);
  if (name == "census") return invocation(census_command(texts), texts);
  if (name == "channel" && verb == "add") return invocation(channel_add(texts), texts);
  if (name == "channel" && verb == "remove") return invocation(channel_remove(texts), texts);
  if (name == "channel") return invocation(Result(CallCommand{"channel.list"}), texts);
  if (name == "metrics") return invocation(Result(CallCommand{"metrics"}), texts);
  if (name == "migrate") return invocation(migrate_command(texts), texts);
  if (name == "top") return invocation(top_command(texts), texts);
  if (name == "provision") return invocation(provision_command(texts), texts);
  if (name == "doctor") return invocation(Result(DoctorCommand{texts.root}), texts);
  if (name == "version") return invocation(Result(VersionCommand{}), texts);
  if (name == "reload") return invocation(Result(CallCommand{"config.reload"}), texts);
  return invocation(Result(CallCommand{"status"}), texts);
}

}  // namespace

Result<std::string> parse_cgroup(std::string_view text) {
  std::string_view path = text;
  if (path == kCgroupMount || path.starts_with("/sys/fs/cgroup/")) {
    path.remove_prefix(kCgroupMount.size());
  }
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part.empty() || part == "." || part == "..") {
      return usage("CGROUP", fmt::format("\"{}\" has an empty part, . or ..", text));
    }
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
  if (path.size() > kCgroupBytesMax) {
    return usage("CGROUP", fmt::format("longer than {} bytes", kCgroupBytesMax));
  }
  return '/' + std::string(path);
}

Result<Invocation> parse_arguments(const std::vector<std::string>& arguments) {
  Texts texts;
  CLI::App app("memsluice: the memory of this host, tier by tier", "memsluice");
  add_commands(&app, texts);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return Invocation{HelpCommand{app.help()}, false, {}};
  } catch (const CLI::CallForVersion& version) {
    return Invocation{HelpCommand{std::string(version.what()) + "\n"}, false, {}};
  } catch (const CLI::ExtrasError& error) {
    const auto left = app.remaining(true);
    return unexpected(left.empty() ? error.what() : left.front(), chosen_commands(app));
  } catch (const CLI::ArgumentMismatch& error) {
    return wrong_value(error, "takes exactly one value, and once", chosen_commands(app));
  } catch (const CLI::ParseError& error) {
    // All values are texts: only a switch can find a value wrong.
    return wrong_value(error, "takes no value", chosen_commands(app));
  }
  return interpret(chosen_commands(app), texts);
}

}  // namespace memsluice
