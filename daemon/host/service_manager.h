// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/base/clock.h"

namespace memsluice {

// Tells systemd how we are, by the protocol of sd_notify(3); without systemd it tells nobody.
class ServiceManager {
 public:
  static ServiceManager from_environment();

  // "READY=1", "STATUS=...", lines of KEY=VALUE.
  void notify(std::string_view state) const;

  // How often "WATCHDOG=1" is due: half of what systemd allows.
  std::optional<Milliseconds> watchdog_period() const { return watchdog_period_; }

 private:
  std::string socket_path_;
  std::optional<Milliseconds> watchdog_period_;
};

}  // namespace memsluice
