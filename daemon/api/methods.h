// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "daemon/api/metrics.h"
#include "daemon/api/protocol.h"
#include "daemon/base/clock.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/json.h"
#include "daemon/control/bandwidth.h"
#include "daemon/control/census.h"
#include "daemon/control/channels.h"
#include "daemon/control/engines.h"
#include "daemon/control/migrations.h"
#include "daemon/control/tenants.h"
#include "daemon/control/upkeep.h"
#include "daemon/host/kernel_module.h"
#include "daemon/host/paths.h"

namespace memsluice {

// What the methods say about the daemon itself.
struct DaemonFacts {
  std::string version;
  std::string config_path;
  Milliseconds started{0};
  int64_t config_loaded_unix_s = 0;
};

// The methods of docs/api.md.
class Methods {
 public:
  using Reply = std::function<void(const Result<Json>&)>;
  // A call that is answered later: dropping it drops the answer too.
  using Pending = std::shared_ptr<void>;
  using Reload = std::function<Result<bool>()>;

  Methods(Module& module, Tenants& tenants, Migrations& migrations, Upkeep& upkeep,
          Engines& engines, Census& census, Channels& channels, Bandwidth& bandwidth,
          Metrics& metrics, EventLoop& loop, const Clock& clock, const Paths& paths,
          const DaemonFacts& facts, Reload reload);

  // Replies exactly once: before it returns (null then), or while what it returns is held.
  Pending call(const Request& request, bool may_change, const Reply& reply);

 private:
  struct Method;
  static const Method* find(const std::string& name);

  Result<Json> hello(const Json& params, bool may_change);
  Result<Json> status(const Json& params);
  Result<Json> tenant_list(const Json& params);
  Result<Json> tenant_get(const Json& params);
  Result<Json> tenant_set(const Json& params);
  Result<Json> tenant_clear(const Json& params);
  Result<Json> migrate(const Json& params);
  Result<Json> redistribute(const Json& params);
  Result<Json> request_list(const Json& params);
  Result<Json> request_get(const Json& params);
  Result<Json> request_cancel(const Json& params);
  Result<Json> config_reload(const Json& params);
  Result<Json> counters(const Json& params);
  Pending request_wait(const Json& params, const Reply& reply);
  Pending engine_list(const Json& params, const Reply& reply);
  Pending engine_test(const Json& params, const Reply& reply);
  Pending engine_drain(const Json& params, const Reply& reply);
  Pending engine_reset(const Json& params, const Reply& reply);
  Pending metrics(const Json& params, const Reply& reply);
  Pending census(const Json& params, const Reply& reply);
  Result<Json> channel_list(const Json& params);
  Pending channel_add(const Json& params, const Reply& reply);
  Pending channel_remove(const Json& params, const Reply& reply);
  Pending engine_act(const Json& params, memsluice_engine_action action, const Reply& reply);

  Module& module_;
  Tenants& tenants_;
  Migrations& migrations_;
  Upkeep& upkeep_;
  Engines& engines_;
  Census& census_;
  Channels& channels_;
  Bandwidth& bandwidth_;
  Metrics& metrics_;
  EventLoop& loop_;
  const Clock& clock_;
  Paths paths_;
  const DaemonFacts& facts_;
  Reload reload_;
};

}  // namespace memsluice
