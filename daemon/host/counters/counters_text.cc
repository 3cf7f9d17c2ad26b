// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/counters/counters_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "daemon/base/units.h"
#include "daemon/host/files.h"
#include "daemon/host/numa.h"

namespace memsluice {
namespace {

constexpr std::string_view kFirstLine = "memsluice-counters 1";
constexpr uint64_t kAnyCount = UINT64_MAX;

Error bad_line(size_t line, std::string message) {
  return {.code = ErrorCode::kFailed,
          .object = fmt::format("line {}", line),
          .message = std::move(message)};
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!(line = trimmed(line)).empty()) {
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

// "NAME read_bytes=1 write_bytes=2 node=0 enabled_ns=4 running_ns=3"
Result<ChannelCounts> parse_channel(const std::vector<std::string_view>& words, size_t line) {
  ChannelCounts counts{.name = std::string(words[0])};
  std::set<std::string_view> seen;
  for (size_t i = 1; i < words.size(); i++) {
    const size_t equals = std::min(words[i].find('='), words[i].size());
    const std::string_view key = words[i].substr(0, equals);
    const std::string_view text = words[i].substr(std::min(equals + 1, words[i].size()));
    auto value = parse_number(text, 0, key == "node" ? kNodeIdMax : kAnyCount);
    if (!value.ok()) return bad_line(line, fmt::format("{}: {}", key, value.error().describe()));
    if (!seen.insert(key).second) return bad_line(line, fmt::format("{} is there twice", key));
    if (key == "read_bytes")
      counts.read_bytes = *value;
    else if (key == "write_bytes")
      counts.write_bytes = *value;
    else if (key == "node")
      counts.node = static_cast<int>(*value);
    else if (key == "enabled_ns")
      counts.enabled_ns = *value;
    else if (key == "running_ns")
      counts.running_ns = *value;
    else
      return bad_line(line, fmt::format("{} is no key that is known", key));
  }
  if (!seen.contains("read_bytes") || !seen.contains("write_bytes"))
    return bad_line(line, "read_bytes or write_bytes is missing");
  return counts;
}

}  // namespace

Result<std::vector<ChannelCounts>> parse_counters_text(std::string_view text) {
  std::vector<ChannelCounts> channels;
  std::set<std::string> names;
  for (size_t line = 1; !text.empty(); line++) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line == 1) {
      if (content != kFirstLine) return bad_line(line, fmt::format("is not \"{}\"", kFirstLine));
      continue;
    }
    if (content.empty() || content.starts_with('#')) continue;
    auto counts = parse_channel(words_of(content), line);
    if (!counts.ok()) return std::move(counts).error();
    if (!names.insert(counts->name).second)
      return bad_line(line, fmt::format("{} is there twice", counts->name));
    channels.push_back(*std::move(counts));
  }
  if (channels.empty())
    return Error{
        .code = ErrorCode::kUnavailable, .object = "counters", .message = "name no channel"};
  std::sort(channels.begin(), channels.end(),
            [](const auto& left, const auto& right) { return left.name < right.name; });
  return channels;
}

std::string format_counters_text(const std::vector<ChannelCounts>& channels) {
  std::string text = fmt::format("{}\n", kFirstLine);
  for (const ChannelCounts& counts : channels) {
    text += fmt::format("{} read_bytes={} write_bytes={}", counts.name, counts.read_bytes,
                        counts.write_bytes);
    if (counts.node) text += fmt::format(" node={}", *counts.node);
    if (counts.enabled_ns != 0)
      text += fmt::format(" enabled_ns={} running_ns={}", counts.enabled_ns, counts.running_ns);
    text += '\n';
  }
  return text;
}

}  // namespace memsluice
