// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/counters/text_counters.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "daemon/base/unix_socket.h"
#include "daemon/host/counters/counters_text.h"
#include "daemon/host/counters/monotonic.h"

namespace memsluice {
namespace {

constexpr size_t kTextBytesMax = 1 << 20;
// A file that nobody has written for so long says nothing about now.
constexpr auto kFileAgeMax = std::chrono::seconds(5);
constexpr Milliseconds kSocketTimeout{1000};
// Whoever gives byte by byte.
constexpr auto kReadingMax = std::chrono::seconds(3);

Result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  std::array<char, 4096> buffer;
  const Nanoseconds begin = monotonic_now();
  for (;;) {
    const ssize_t bytes = ::read(fd, buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno_error(errno, "read", path);
    if (bytes == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(bytes));
    if (text.size() > kTextBytesMax)
      return Error{.object = path, .message = "says more than 1 MiB"};
    if (monotonic_now() - begin > kReadingMax)
      return Error{.object = path, .message = "does not come to an end"};
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
