// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/base/fd.h"
#include "daemon/base/result.h"
#include "daemon/host/placement.h"
#include "uapi/memsluice.h"

namespace memsluice {

struct Policy {
  bool tiering = true;
  uint64_t fast_limit_bytes = MEMSLUICE_NO_LIMIT;
  uint32_t promote_mib_per_s = 0;
  uint32_t demote_mib_per_s = 0;
  Placement placement = {};

  bool operator==(const Policy&) const = default;
};

// What has ioctls of its own, the placement, is not in it.
memsluice_policy to_kernel(const Policy& policy);
Policy from_kernel(const memsluice_policy& policy);

struct ModuleInfo {
  std::string release;
  uint32_t abi_version = 0;
  uint64_t features = 0;
  // Another number each time the module is loaded: it then knows nothing of what it was told.
  uint64_t instance = 0;

  std::vector<std::string> feature_names() const;
};

struct Migration {
  // A process's pages...
  int pidfd = -1;
  uint64_t address = 0;
  uint64_t length_bytes = 0;
  bool all_mappings = false;
  // ... or, where there is no pidfd, what is charged to a cgroup on one node...
  uint64_t cgroup_id = 0;
  int source_node = -1;

  // ... or, where there is no target node either, on one or all (-1), to where its placement has
  // it; at once or, page by page, when it is touched.
  int target_node = -1;
  bool on_touch = false;

  uint32_t mib_per_s = 0;  // at most; 0: no limit

  memsluice_migrate_kind kind() const;
};

// What the module has made of a placement.
struct PlacementStatus {
  Placement placement = {};
  uint64_t fallback_folios = 0;
  uint64_t spilled_folios = 0;
};

// A copy engine, and what it copies through.
struct EngineInfo {
  memsluice_engine_status status = {};
  std::vector<memsluice_engine_queue> queues = {};

  std::string name() const;
};

// What has become of a channel that was to be removed.
struct ChannelRemoval {
  memsluice_channel_remove result = {};
  int os_error = 0;  // 0: it is gone
};

// Runs until it has ended or this object does, which cancels it.
class MigrationRequest {
 public:
  virtual ~MigrationRequest() = default;
  virtual int fd() const = 0;  // polls readable when the request has ended
  virtual Result<memsluice_request_status> status() = 0;
  virtual Result<void> cancel() = 0;
};

// The module, as include/uapi/memsluice.h has it. Every call finds out anew whether it is loaded
// (else ErrorCode::kUnavailable) and keeps nothing open: the module can be unloaded at any time.
class Module {
 public:
  virtual ~Module() = default;
  virtual Result<ModuleInfo> info() = 0;
  // All of the policy or, with an error, none.
  virtual Result<uint64_t> tenant_set(const Fd& cgroup, const Policy& policy) = 0;
  virtual Result<void> tenant_clear(uint64_t cgroup_id) = 0;
  virtual Result<std::vector<uint64_t>> tenant_list() = 0;
  virtual Result<memsluice_tenant_status> tenant_status(uint64_t cgroup_id) = 0;
  virtual Result<PlacementStatus> tenant_placement(uint64_t cgroup_id) = 0;
  virtual Result<std::unique_ptr<MigrationRequest>> migrate(const Migration& migration) = 0;
  // That which copies first comes first. These two may wait for seconds, and may be called by any
  // thread.
  virtual Result<std::vector<EngineInfo>> engines() = 0;
  virtual Result<void> engine_act(const std::string& engine, const std::string& queue,
                                  memsluice_engine_action action) = 0;
  // The page frames of a node, or of all. May wait for seconds, and may be called by any thread.
  virtual Result<std::vector<memsluice_census_row>> census(std::optional<int> node) = 0;
  // In ascending order of nodes.
  virtual Result<std::vector<memsluice_channel_status>> channels() = 0;
  // What was given, with what has become of it. These two may be called by any thread.
  virtual Result<memsluice_channel_add> channel_add(const memsluice_channel_add& add) = 0;
  // May wait as long as it is allowed to. A signal to the thread ends it early, and undoes it.
  virtual Result<ChannelRemoval> channel_remove(int node, Milliseconds deadline) = 0;
};

// What a call that the module refused means, with what to do where that is known.
Error module_error(int os_error, std::string_view call);

std::unique_ptr<Module> open_kernel_module(std::string device);

// Of a member that the module has filled in.
std::string engine_name(const char (&name)[MEMSLUICE_ENGINE_NAME_BYTES]);

// Likewise; and the other way round: false if there is no room for it.
std::string channel_name(const char (&name)[MEMSLUICE_CHANNEL_NAME_BYTES]);
bool put_channel_name(const std::string& name, char (&room)[MEMSLUICE_CHANNEL_NAME_BYTES]);

// The name of docs/api.md; `index` is an enum memsluice_refusal.
std::string refusal_name(size_t index);

// Likewise; `index` is an enum memsluice_frame_kind.
std::string frame_kind_name(size_t index);

}  // namespace memsluice
