// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/log.h"

#include <unistd.h>

namespace memsluice {

std::optional<LogLevel> log_level_from_name(std::string_view name) {
  if (name == "error") return LogLevel::kError;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "info") return LogLevel::kInfo;
  if (name == "debug") return LogLevel::kDebug;
  return std::nullopt;
}

Log::Log(LogLevel level, Sink sink) : level_(level), sink_(std::move(sink)) {}

void Log::emit(LogLevel level, std::string text) const {
  // What clients and cgroup names bring along must not forge lines of the log.
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  sink_(fmt::format("<{}>{}\n", static_cast<int>(level), text));
}

void Log::write_to_stderr(std::string_view line) {
  // A log that cannot be written to has nowhere to say so.
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace memsluice
