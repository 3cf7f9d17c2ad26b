// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/host/kernel_module.h"

namespace memsluice {

// The module in memory, for tests: same rules and same errors as the real one, and faults on order.
class FakeModule : public Module {
 public:
  struct Request {
    Migration migration;
    memsluice_request_status status = {};
    Fd ended;  // becomes readable when the request has ended
    bool open = true;
  };

  void unload();
  void load();
  void drop_tenant(uint64_t cgroup_id) { tenants_.erase(cgroup_id); }
  // As if another program had set it.
  void put_tenant(uint64_t cgroup_id, const Policy& policy) { tenants_[cgroup_id] = policy; }
  // The next call of this name fails so: "tenant set", "tenant clear", "migrate", ...
  void fail_next(const std::string& call, int os_error) { faults_[call].push_back(os_error); }
  // As a module that is older than its engines' ioctls.
  void forget_engines() { features_ &= ~MEMSLUICE_FEATURE_ENGINES; }
  void add_engine(const std::string& name, int rank, const std::vector<std::string>& queues);
  memsluice_engine_queue& engine_queue(const std::string& name);
  void put_census(std::vector<memsluice_census_row> rows) { census_ = std::move(rows); }
  // The next channel is not removed, for this reason.
  void refuse_removal(const ChannelRemoval& why) { refused_removal_ = why; }
  // Those that follow wait for a signal, or for their deadline.
  void hold_removals() { hold_removals_ = true; }
  void end_request(uint64_t id, memsluice_request_state state, int os_error = 0);

  const std::map<uint64_t, Policy>& tenants() const { return tenants_; }
  const std::map<uint64_t, std::shared_ptr<Request>>& requests() const { return requests_; }
  // tenant_set and tenant_clear that came through.
  int changes() const { return changes_; }

  Result<ModuleInfo> info() override;
  Result<uint64_t> tenant_set(const Fd& cgroup, const Policy& policy) override;
  Result<void> tenant_clear(uint64_t cgroup_id) override;
  Result<std::vector<uint64_t>> tenant_list() override;
  Result<memsluice_tenant_status> tenant_status(uint64_t cgroup_id) override;
  Result<PlacementStatus> tenant_placement(uint64_t cgroup_id) override;
  Result<std::unique_ptr<MigrationRequest>> migrate(const Migration& migration) override;
  Result<std::vector<EngineInfo>> engines() override;
  Result<void> engine_act(const std::string& engine, const std::string& queue,
                          memsluice_engine_action action) override;
  Result<std::vector<memsluice_census_row>> census(std::optional<int> node) override;
  Result<std::vector<memsluice_channel_status>> channels() override;
  Result<memsluice_channel_add> channel_add(const memsluice_channel_add& add) override;
  Result<ChannelRemoval> channel_remove(int node, Milliseconds deadline) override;

 private:
  Result<void> enter(const std::string& call);

  std::mutex lock_;  // other threads ask for engines, and the census
  uint64_t features_ =
      MEMSLUICE_FEATURE_MIGRATE | MEMSLUICE_FEATURE_TIERING | MEMSLUICE_FEATURE_ENGINES;
  std::vector<EngineInfo> engines_;
  std::vector<memsluice_census_row> census_;
  std::map<int, memsluice_channel_status> channels_;  // by node
  std::optional<ChannelRemoval> refused_removal_;
  bool hold_removals_ = false;
  bool loaded_ = true;
  uint64_t instance_ = 1;
  int changes_ = 0;
  std::map<uint64_t, Policy> tenants_;
  std::map<uint64_t, std::shared_ptr<Request>> requests_;
  std::map<std::string, std::vector<int>> faults_;
};

}  // namespace memsluice
