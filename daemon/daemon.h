// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "daemon/api/methods.h"
#include "daemon/api/metrics.h"
#include "daemon/api/server.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/log.h"
#include "daemon/control/bandwidth.h"
#include "daemon/control/census.h"
#include "daemon/control/channels.h"
#include "daemon/control/config.h"
#include "daemon/control/cpuset_keeper.h"
#include "daemon/control/dsa_replay.h"
#include "daemon/control/engines.h"
#include "daemon/control/migrations.h"
#include "daemon/control/tenants.h"
#include "daemon/control/upkeep.h"
#include "daemon/host/kernel_module.h"
#include "daemon/host/paths.h"
#include "daemon/host/service_manager.h"

namespace memsluice {

struct DaemonOptions {
  std::string config_path = kDefaultConfigPath;
  std::string socket = {};  // empty: the configuration's
};

// The parts, wired together and kept going by one thread.
class Daemon {
 public:
  Daemon(DaemonOptions options, Config config, const Paths& paths, Module& module, Engines& engines,
         Census& census, Channels& channels, Bandwidth& bandwidth, LostTimes& lost_times,
         const Clock& clock, EventLoop& loop, Log& log, ServiceManager service_manager);
  ~Daemon();

  // Until SIGTERM or SIGINT. The module keeps what it was told.
  Result<void> run();

 private:
  void look();
  void tell_status();
  Result<bool> reload();
  void take_settings(const Config& config);
  bool may_change(const Peer& peer) const;

  DaemonOptions options_;
  Paths paths_;
  EventLoop& loop_;
  const Clock& clock_;
  Log& log_;
  ServiceManager service_manager_;
  DaemonFacts facts_;
  Bandwidth& bandwidth_;
  LostTimes& lost_times_;
  Tenants tenants_;
  Migrations migrations_;
  Upkeep upkeep_;
  CpusetKeeper cpuset_keeper_;
  DsaReplay dsa_replay_;
  Metrics metrics_;
  Methods methods_;
  Server server_;
  std::string socket_;
  std::optional<gid_t> group_;
  std::string told_status_;
  EventLoop::Timer look_timer_;
  EventLoop::Timer upkeep_timer_;
  EventLoop::Timer replay_timer_;
  EventLoop::Timer watchdog_timer_;
};

// "3 problems" and all of them in the log; the error names the first.
Error problems_error(const LoadedConfig& loaded, const Log& log);

}  // namespace memsluice
