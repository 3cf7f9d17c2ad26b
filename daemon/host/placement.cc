// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>

#include "daemon/base/units.h"

namespace memsluice {
namespace {

constexpr const char* kChannelsHint =
    "write it as 1:3,2:2 (node 1 gets three parts, node 2 two) or none";

Error bad_channels(std::string_view text) {
  return {.code = ErrorCode::kBadRequest,
          .object = "channels",
          .message = fmt::format("\"{}\" names no channels", text),
          .hint = kChannelsHint};
}

Error bad_change(std::string_view text) {
  return {.code = ErrorCode::kBadRequest,
          .object = "channels",
          .message = fmt::format("\"{}\" is no change of channels", text),
          .hint = "write it as +3:2,-1 (node 3 comes with two parts, node 1 goes)"};
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = std::min(text.find(','), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

// "3:2" or "3".
std::optional<Channel> parse_channel(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  auto node = parse_number(text.substr(0, colon), 0, UINT32_MAX);
  auto weight = colon == text.size() ? Result(uint64_t{1})
                                     : parse_number(text.substr(colon + 1), 0, UINT32_MAX);
  if (!node.ok() || !weight.ok()) return std::nullopt;
  return Channel{static_cast<uint32_t>(*node), static_cast<uint32_t>(*weight)};
}

Error bad_granule(std::string text) {
  return {.code = ErrorCode::kBadRequest,
          .object = "granule",
          .message = fmt::format("{} is no power of two from {} to {}", text,
                                 format_bytes(granule_bytes(0)),
                                 format_bytes(granule_bytes(MEMSLUICE_GRANULE_ORDER_MAX))),
          .hint = "2M, the default, survives the kernel's collapse into huge pages"};
}

}  // namespace

Result<std::vector<Channel>> parse_channels(std::string_view text) {
  std::vector<Channel> channels;
  if (text == "none") return channels;
  for (std::string_view part : parts_of(text)) {
    auto channel = parse_channel(part);
    if (!channel || channels.size() == MEMSLUICE_CHANNELS_MAX) return bad_channels(text);
    channels.push_back(*channel);
  }
  return channels;
}

bool is_channel_change(std::string_view text) {
  return text.starts_with('+') || text.starts_with('-');
}

Result<ChannelChange> parse_channel_change(std::string_view text) {
  ChannelChange change;
  for (std::string_view part : parts_of(text)) {
    const char sign = part.empty() ? '\0' : part.front();
    auto channel = parse_channel(part.substr(std::min<size_t>(1, part.size())));
    const bool weighted = part.find(':') != part.npos;
    if (!channel || (sign != '+' && (sign != '-' || weighted))) return bad_change(text);
    if (sign == '+')
      change.set.push_back(*channel);
    else
      change.removed.push_back(channel->node);
  }
  return change;
}

Result<std::vector<Channel>> changed(std::vector<Channel> channels, const ChannelChange& change) {
  const auto find = [&](uint32_t node) {
    return std::find_if(channels.begin(), channels.end(),
                        [&](const Channel& channel) { return channel.node == node; });
  };
  for (uint32_t node : change.removed) {
    const auto found = find(node);
    if (found == channels.end())
      return Error{.code = ErrorCode::kBadRequest,
                   .object = "channels",
                   .message = fmt::format("node {} is none of its channels", node),
                   .hint = fmt::format("they are {}", format_channels(channels))};
    channels.erase(found);
  }
  for (const Channel& channel : change.set) {
    const auto found = find(channel.node);
    if (found == channels.end())
      channels.push_back(channel);
    else
      found->weight = channel.weight;
  }
  if (channels.empty())
    return Error{.code = ErrorCode::kBadRequest,
                 .object = "channels",
                 .message = "none would be left",
                 .hint = "\"none\" lets the kernel place again"};
  return channels;
}

std::string format_channels(const std::vector<Channel>& channels) {
  if (channels.empty()) return "none";
  std::vector<std::string> parts;
  for (const Channel& channel : channels)
    parts.push_back(fmt::format("{}:{}", channel.node, channel.weight));
  return fmt::format("{}", fmt::join(parts, ","));
}

uint64_t granule_bytes(uint32_t order) {
  static const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return page_bytes << order;
}

Result<uint32_t> granule_order(uint64_t bytes) {
  if (!std::has_single_bit(bytes) || bytes < granule_bytes(0) ||
      bytes > granule_bytes(MEMSLUICE_GRANULE_ORDER_MAX))
    return bad_granule(fmt::format("{}", bytes));
  return static_cast<uint32_t>(std::countr_zero(bytes / granule_bytes(0)));
}

Result<uint32_t> parse_granule(std::string_view text) {
  auto bytes = parse_bytes(text);
  if (!bytes.ok()) return bad_granule(fmt::format("\"{}\"", text));
  return granule_order(*bytes);
}

Error placement_error(int os_error) {
  Error error{.code = ErrorCode::kBadRequest, .object = "channels", .os_error = os_error};
  switch (os_error) {
    case ENODEV:
      error.message = "a node among them has no memory";
      error.hint = "memsluice status lists those that have";
      return error;
    case ERANGE:
      error.message = fmt::format("the weights add up to more than {}", MEMSLUICE_SPREAD_SLOTS);
      error.hint = "rounder ones do: 3600:2700 is as good as 4:3";
      return error;
    case EINVAL:
      error.message = "a node is named twice, or none has a weight";
      error.hint = kChannelsHint;
      return error;
    case EBUSY:
      error.code = ErrorCode::kUnavailable;
      error.message = "the module cannot place pages: ftrace is switched off";
      error.hint = "sysctl kernel.ftrace_enabled=1";
      return error;
    default:
      error.code = ErrorCode::kUnavailable;
      error.message = fmt::format("the module cannot place pages: {}", std::strerror(os_error));
      error.hint = "its log says why (dmesg)";
      return error;
  }
}

}  // namespace memsluice
