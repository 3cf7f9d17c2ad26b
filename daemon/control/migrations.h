// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/event_loop.h"
#include "daemon/base/log.h"
#include "daemon/host/cgroups.h"
#include "daemon/host/kernel_module.h"
#include "daemon/host/paths.h"

namespace memsluice {

struct ProcessMigration {
  int pid = 0;
  // Both or none: all of its memory.
  std::optional<uint64_t> address = {};
  std::optional<uint64_t> length_bytes = {};
  int target_node = 0;
  bool all_mappings = false;
  uint32_t mib_per_s = 0;  // at most; 0: no limit
};

struct TenantMigration {
  std::string cgroup;
  int source_node = 0;
  int target_node = 0;
  uint32_t mib_per_s = 0;  // at most; 0: no limit
};

// What lies elsewhere comes to where the placement of its tenant has it.
struct Redistribution {
  std::string cgroup;
  std::optional<int> source_node = {};  // all, if not said
  bool on_touch = false;                // each page when it is touched next
  uint32_t mib_per_s = 0;               // at most; 0: no limit
  bool upkeep = false;                  // nobody has asked for it
};

struct RequestView {
  uint64_t id = 0;
  memsluice_migrate_kind kind = MEMSLUICE_MIGRATE_RANGE;
  std::string object;  // "pid 123" or the path of a cgroup
  std::optional<int> target_node = {};
  bool on_touch = false;
  bool upkeep = false;
  std::optional<Error> error = {};
  memsluice_request_status status = {};

  bool has_ended() const { return status.state != MEMSLUICE_REQUEST_RUNNING; }
};

// The migration requests of this daemon. Those that run end with it.
class Migrations {
 public:
  using EndCallback = std::function<void()>;
  // Waits for as long as somebody holds it.
  using Waiter = std::shared_ptr<EndCallback>;

  static constexpr size_t kEndedKept = 64;
  static constexpr size_t kRunningMax = 64;

  Migrations(Module& module, const Paths& paths, EventLoop& loop, const Log& log);

  Result<RequestView> start(const ProcessMigration& migration);
  Result<RequestView> start(const TenantMigration& migration);
  Result<RequestView> start(const Redistribution& redistribution);
  std::vector<RequestView> list();
  Result<RequestView> get(uint64_t id);
  Result<RequestView> cancel(uint64_t id);
  // Calls back once, when the request ends. Not at all if it has ended: look first.
  Waiter when_ended(uint64_t id, EndCallback callback);

 private:
  struct Request {
    RequestView view;
    std::unique_ptr<MigrationRequest> running;
    EventLoop::Watch watch;
    std::vector<std::weak_ptr<EndCallback>> waiters;
  };

  Result<void> check_node(int node) const;
  Result<RequestView> start(RequestView view, const Migration& migration);
  void refresh(Request& request);
  void on_readable(uint64_t id);

  Module& module_;
  EventLoop& loop_;
  const Log& log_;
  Paths paths_;
  Cgroups cgroups_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, Request> requests_;
  std::deque<uint64_t> ended_;
};

}  // namespace memsluice
