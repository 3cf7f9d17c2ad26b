// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/counters/text_counters.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "daemon/base/units.h"
#include "daemon/base/unix_socket.h"
#include "daemon/host/counters/monotonic.h"
#include "daemon/host/counters/pmu_counters.h"
#include "daemon/host/files.h"

namespace memsluice {
namespace {

constexpr std::string_view kFirstLine = "memsluice-counters 1";
constexpr size_t kTextBytesMax = 1 << 20;
constexpr uint64_t kNodeMax = 1023;
constexpr uint64_t kAnyCount = UINT64_MAX;
// A file that nobody has written for so long says nothing about now.
constexpr auto kFileAgeMax = std::chrono::seconds(5);
constexpr Milliseconds kSocketTimeout{1000};

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
    auto value = parse_number(text, 0, key == "node" ? kNodeMax : kAnyCount);
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

Result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t bytes = ::read(fd, buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno_error(errno, "read", path);
    if (bytes == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(bytes));
    if (text.size() > kTextBytesMax)
      return Error{.object = path, .message = "says more than 1 MiB"};
  }
}

Result<std::string> ask(const std::string& path) {
  auto socket = connect_to(path, kSocketTimeout);
  if (!socket.ok()) return std::move(socket).error();
  timeval timeout = {.tv_sec = kSocketTimeout.count() / 1000, .tv_usec = 0};
  ::setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  return read_all(socket->get(), path);
}

struct TimedText {
  Nanoseconds time{0};
  std::string text = {};
};

Result<TimedText> read_source(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return errno_error(errno, "stat", path);
  if (S_ISSOCK(status.st_mode)) {
    auto text = ask(path);
    if (!text.ok()) return std::move(text).error();
    return TimedText{monotonic_now(), *std::move(text)};
  }
  if (!S_ISREG(status.st_mode))
    return Error{.code = ErrorCode::kBadRequest,
                 .object = path,
                 .message = "is neither a file nor a unix socket"};
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return errno_error(errno, "open", path);
  if (::fstat(file.get(), &status) != 0) return errno_error(errno, "fstat", path);
  const Nanoseconds written =
      std::chrono::seconds(status.st_mtim.tv_sec) + Nanoseconds(status.st_mtim.tv_nsec);
  const Nanoseconds age = std::max(clock_now(CLOCK_REALTIME) - written, Nanoseconds(0));
  if (age > kFileAgeMax)
    return Error{
        .code = ErrorCode::kUnavailable,
        .object = path,
        .message = fmt::format("has not been written for {} s",
                               std::chrono::duration_cast<std::chrono::seconds>(age).count()),
        .hint = "does the program that counts still run?"};
  auto text = read_all(file.get(), path);
  if (!text.ok()) return std::move(text).error();
  return TimedText{monotonic_now() - age, *std::move(text)};
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

Result<CountersReading> TextCounters::read() {
  auto source = read_source(settings_.source);
  if (!source.ok()) return std::move(source).error();
  auto channels = parse_counters_text(source->text);
  if (!channels.ok()) return std::move(channels).error().with_context(settings_.source);
  CountersReading reading{.time = source->time, .channels = *std::move(channels)};
  reading.notices = apply_configured_nodes(settings_, reading.channels);
  return reading;
}

}  // namespace memsluice
