// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace memsluice {

// The numbers are syslog's.
enum class LogLevel { kError = 3, kWarning = 4, kInfo = 6, kDebug = 7 };

std::optional<LogLevel> log_level_from_name(std::string_view name);

// Lines with syslog's "<N>" in front, which the journal takes as their priority.
class Log {
 public:
  using Sink = std::function<void(std::string_view line)>;

  explicit Log(LogLevel level = LogLevel::kInfo, Sink sink = write_to_stderr);

  void set_level(LogLevel level) { level_ = level; }

  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::kError, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::kWarning, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::kInfo, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::kDebug, format, std::forward<Args>(args)...);
  }

 private:
  static void write_to_stderr(std::string_view line);

  template <typename... Args>
  void write(LogLevel level, fmt::format_string<Args...> format, Args&&... args) const {
    if (level <= level_) emit(level, fmt::format(format, std::forward<Args>(args)...));
  }
  void emit(LogLevel level, std::string text) const;

  LogLevel level_;
  Sink sink_;
};

}  // namespace memsluice
