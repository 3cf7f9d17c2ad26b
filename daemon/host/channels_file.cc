// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/channels_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "daemon/base/toml_table.h"
#include "daemon/base/units.h"
#include "daemon/host/numa.h"

namespace memsluice {
namespace {

constexpr size_t kNameBytesMax = 31;
constexpr uint64_t kMibPerSMax = 16 << 20;
constexpr uint64_t kLatencyNsMax = 1000000;
constexpr size_t kCommentColumns = 98;

Result<std::string> parse_name(const std::string& text) {
  const bool good = !text.empty() && text.size() <= kNameBytesMax &&
                    text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == text.npos;
  if (good) return text;
  return Error{.code = ErrorCode::kBadRequest,
               .message = fmt::format("\"{}\" is no name", text),
               .hint = fmt::format("1 to {} of a-z, 0-9, _ and -", kNameBytesMax)};
}

Result<uint64_t> parse_length(const std::string& text) {
  auto bytes = parse_bytes(text);
  if (!bytes.ok() || *bytes > 0) return bytes;
  return Error{.code = ErrorCode::kBadRequest, .message = "must be greater than 0"};
}

std::optional<uint32_t> read_speed(TomlTable& table, const char* key, uint64_t high) {
  auto speed = table.integer(key, 1, high);
  return speed ? std::optional(static_cast<uint32_t>(*speed)) : std::nullopt;
}

ChannelSpeeds read_speeds(TomlTable& table) {
  return {.read_mib_per_s = read_speed(table, "read_mib_per_s", kMibPerSMax),
          .write_mib_per_s = read_speed(table, "write_mib_per_s", kMibPerSMax),
          .read_latency_ns = read_speed(table, "read_latency_ns", kLatencyNsMax),
          .write_latency_ns = read_speed(table, "write_latency_ns", kLatencyNsMax)};
}

void require(TomlTable& table, const char* key, const char* hint) {
  if (!table.contents().contains(key)) table.problem("", fmt::format("has no {}", key), hint);
}

std::optional<PhysicalRange> read_range(TomlTable& table) {
  const auto start = table.integer("start", 0, kPhysicalEnd - 1);
  const auto bytes = table.converted<uint64_t>("length", parse_length);
  const bool has_start = table.contents().contains("start");
  if (has_start != table.contents().contains("length"))
    table.problem("", fmt::format("has no {}", has_start ? "length" : "start"),
                  has_start ? "length = \"2G\"" : "start = 0x140000000");
  if (!start || !bytes) return std::nullopt;
  for (const auto& [key, value] : {std::pair{"start", *start}, std::pair{"length", *bytes}})
    if (value % kMemoryBlockBytesMin != 0) {
      table.problem(key, "must be a multiple of 128 MiB, the least that a kernel adds");
      return std::nullopt;
    }
  if (*bytes <= kPhysicalEnd - *start) return PhysicalRange{*start, *bytes};
  table.problem("length", "reaches beyond 52 bits of address");
  return std::nullopt;
}

ChannelDefinition read_channel(TomlTable& table) {
  ChannelDefinition channel{.position = table.position("")};
  if (auto name = table.converted<std::string>("name", parse_name)) channel.name = *name;
  if (auto group = table.text("group")) channel.group = *group;
  channel.range = read_range(table);
  if (auto node = table.integer("node", 0, kNodeIdMax)) channel.node = static_cast<int>(*node);
  channel.speeds = read_speeds(table);
  table.finish();
  require(table, "name", "name = \"dram0\"");
  require(table, "group", "group = \"dram\"");
  const toml::table& keys = table.contents();
  if (!keys.contains("start") && !keys.contains("length") && !keys.contains("node"))
    table.problem("", "has neither memory nor a node",
                  "start = 0x140000000 and length = \"2G\", or node = 1");
  return channel;
}

// What two channels have in common is refused where the second of them stands.
void check_against(TomlTable& table, const ChannelDefinition& channel, const ChannelsFile& before) {
  for (const ChannelDefinition& other : before.channels) {
    if (channel.range && other.range && channel.range->overlaps(*other.range))
      table.problem("start", fmt::format("{} overlaps with {} of {}", format_exact(*channel.range),
                                         format_exact(*other.range), other.name));
    if (!channel.name.empty() && other.name == channel.name)
      table.problem("name", fmt::format("\"{}\" is there twice", channel.name));
    if (channel.node && other.node == channel.node)
      table.problem("node", fmt::format("{} is that of {}", *channel.node, other.name),
                    "a channel is a node of its own");
  }
  if (channel.group.empty() ||
      std::find(before.groups.begin(), before.groups.end(), channel.group) != before.groups.end())
    return;
  table.problem("group", fmt::format("no group is named \"{}\"", channel.group),
                before.groups.empty() ? "[[group]] makes one"
                                      : fmt::format("{}", fmt::join(before.groups, ", ")));
}

void read_root(TomlTable& root, ChannelsFile& file) {
  for (TomlTable& table : root.array_of_tables("group")) {
    auto name = table.converted<std::string>("name", parse_name);
    table.finish();
    require(table, "name", "name = \"dram\"");
    if (!name) continue;
    if (std::find(file.groups.begin(), file.groups.end(), *name) != file.groups.end())
      table.problem("name", fmt::format("\"{}\" is there twice", *name));
    file.groups.push_back(*std::move(name));
  }
  for (TomlTable& table : root.array_of_tables("channel")) {
    ChannelDefinition channel = read_channel(table);
    check_against(table, channel, file);
    file.channels.push_back(std::move(channel));
  }
  root.finish();
}

std::string commented(std::string_view text) {
  std::string result;
  size_t column = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (column != 0 && column + 1 + (end - at) > kCommentColumns) column = 0;
    result += column == 0 ? (result.empty() ? "# " : "\n# ") : " ";
    if (column == 0) column = 1;
    result += text.substr(at, end - at);
    column += 1 + end - at;
    at = end + 1;
  }
  return result.empty() ? result : result + '\n';
}

std::string format_channel(const ChannelDefinition& channel) {
  std::string text =
      fmt::format("\n[[channel]]\nname = \"{}\"\ngroup = \"{}\"\n", channel.name, channel.group);
  if (channel.range)
    text += fmt::format("start = {:#x}\nlength = \"{}\"\n", channel.range->start,
                        format_bytes_exact(channel.range->bytes));
  if (channel.node) text += fmt::format("node = {}\n", *channel.node);
  const ChannelSpeeds& speeds = channel.speeds;
  for (const auto& [key, value] : {std::pair{"read_mib_per_s", speeds.read_mib_per_s},
                                   std::pair{"write_mib_per_s", speeds.write_mib_per_s},
                                   std::pair{"read_latency_ns", speeds.read_latency_ns},
                                   std::pair{"write_latency_ns", speeds.write_latency_ns}})
    if (value) text += fmt::format("{} = {}\n", key, *value);
  return text;
}

void check_range(const ChannelDefinition& channel, const PhysicalRange& range,
                 const HostMemory& host, std::vector<ConfigProblem>& problems) {
  const std::string key = "channel.start";
  if (range.start % host.block_bytes != 0 || range.bytes % host.block_bytes != 0)
    problems.push_back(
        {channel.position, key,
         fmt::format("{} of {} does not begin and end at multiples of {}, the memory "
                     "block of this host",
                     format_exact(range), channel.name, format_bytes(host.block_bytes))});
  for (const PhysicalRange& used : common({range}, host.ram))
    problems.push_back({channel.position, key,
                        fmt::format("{} of {} is in use as RAM", format_exact(used), channel.name),
                        "has the host been booted with the command line of memsluice provision?"});
}

void check_node(const ChannelDefinition& channel, int node, const HostMemory& host,
                std::vector<ConfigProblem>& problems) {
  const auto& possible = host.possible_nodes;
  const auto add = [&](std::string message, std::string hint) {
    problems.push_back({channel.position, "channel.node",
                        fmt::format("{} of {} {}", node, channel.name, message), std::move(hint)});
  };
  if (std::find(possible.begin(), possible.end(), node) == possible.end())
    add("cannot be a node until the next boot",
        fmt::format("the ids that can be: {}", fmt::join(possible, ", ")));
  else if (!channel.range)
    add("has no memory", "say which memory is to be added as this node: start, length");
  else if (host.nodes.contains(node))
    add("has memory already", "a channel is a node of its own");
}

}  // namespace

LoadedChannels parse_channels_file(std::string_view text, const std::string& file) {
  LoadedChannels loaded;
  read_toml(text, file, loaded.problems, [&](TomlTable& root) { read_root(root, loaded.file); });
  return loaded;
}

std::string format_channels_file(const ChannelsFile& file, std::string_view heading) {
  std::string text = commented(heading);
  for (const std::string& group : file.groups)
    text += fmt::format("\n[[group]]\nname = \"{}\"\n", group);
  for (const ChannelDefinition& channel : file.channels) text += format_channel(channel);
  return text;
}

bool is_made(const ChannelDefinition& channel, const HostMemory& host) {
  if (!channel.range) return channel.node && host.nodes.contains(*channel.node);
  for (const auto& [node, memory] : host.nodes)
    if (channel.node.value_or(node) == node && memory == PhysicalRanges{*channel.range})
      return true;
  return false;
}

std::vector<ConfigProblem> check_channels(const ChannelsFile& file, const HostMemory& host) {
  std::vector<ConfigProblem> problems;
  for (const ChannelDefinition& channel : file.channels) {
    if (is_made(channel, host)) continue;
    if (channel.range) check_range(channel, *channel.range, host, problems);
    if (channel.node) check_node(channel, *channel.node, host, problems);
  }
  return problems;
}

}  // namespace memsluice
