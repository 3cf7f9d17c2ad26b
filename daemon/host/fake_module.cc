// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/fake_module.h"

#include <sys/eventfd.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

namespace memsluice {
namespace {

class FakeRequest : public MigrationRequest {
 public:
  FakeRequest(FakeModule& module, std::shared_ptr<FakeModule::Request> request)
      : module_(module), request_(std::move(request)) {}
  ~FakeRequest() override { request_->open = false; }

  int fd() const override { return request_->ended.get(); }
  Result<memsluice_request_status> status() override { return request_->status; }
  Result<void> cancel() override {
    if (request_->status.state == MEMSLUICE_REQUEST_RUNNING)
      module_.end_request(request_->status.id, MEMSLUICE_REQUEST_CANCELLED);
    return {};
  }

 private:
  FakeModule& module_;
  std::shared_ptr<FakeModule::Request> request_;
};

}  // namespace

void FakeModule::unload() {
  loaded_ = false;
  tenants_.clear();
  channels_.clear();
}

void FakeModule::load() {
  loaded_ = true;
  instance_++;
}

void FakeModule::end_request(uint64_t id, memsluice_request_state state, int os_error) {
  Request& request = *requests_.at(id);
  request.status.state = state;
  request.status.error = -os_error;
  request.status.seen_pages = request.status.total_pages;
  ::eventfd_write(request.ended.get(), 1);
}

Result<void> FakeModule::enter(const std::string& call) {
  const std::lock_guard guard(lock_);
  if (!loaded_)
    return Error{.code = ErrorCode::kUnavailable,
                 .object = "/dev/memsluice",
                 .message = "the module is not loaded: open: No such file or directory",
                 .hint = "load it: modprobe memsluice",
                 .os_error = ENOENT};
  if (auto& faults = faults_[call]; !faults.empty()) {
    int os_error = faults.front();
    faults.erase(faults.begin());
    return module_error(os_error, call);
  }
  return {};
}

Result<ModuleInfo> FakeModule::info() {
  if (auto entered = enter("info"); !entered.ok()) return entered.error();
  return ModuleInfo{.release = "1.2.3",
                    .abi_version = MEMSLUICE_ABI_VERSION,
                    .features = features_,
                    .instance = instance_};
}

Result<uint64_t> FakeModule::tenant_set(const Fd& cgroup, const Policy& policy) {
  if (auto entered = enter("tenant set"); !entered.ok()) return entered.error();
  struct stat status;
  if (::fstat(cgroup.get(), &status) != 0) return module_error(EBADF, "tenant set");
  if (policy.promote_mib_per_s > MEMSLUICE_MIB_PER_S_MAX ||
      policy.demote_mib_per_s > MEMSLUICE_MIB_PER_S_MAX)
    return module_error(EINVAL, "tenant set");
  for (const Channel& channel : policy.placement.channels)
    if (channel.node > 1) return placement_error(ENODEV);
  tenants_[status.st_ino] = policy;
  changes_++;
  return status.st_ino;
}

Result<void> FakeModule::tenant_clear(uint64_t cgroup_id) {
  if (auto entered = enter("tenant clear"); !entered.ok()) return entered.error();
  if (tenants_.erase(cgroup_id) == 0) return module_error(ENOENT, "tenant clear");
  changes_++;
  return {};
}

Result<std::vector<uint64_t>> FakeModule::tenant_list() {
  if (auto entered = enter("tenant list"); !entered.ok()) return entered.error();
  std::vector<uint64_t> ids;
  for (const auto& [id, policy] : tenants_) ids.push_back(id);
  return ids;
}

Result<memsluice_tenant_status> FakeModule::tenant_status(uint64_t cgroup_id) {
  if (auto entered = enter("tenant status"); !entered.ok()) return entered.error();
  auto tenant = tenants_.find(cgroup_id);
  if (tenant == tenants_.end()) return module_error(ENOENT, "tenant status");
  memsluice_tenant_status status = {};
  status.size = sizeof(status);
  status.cgroup_id = cgroup_id;
  status.policy = to_kernel(tenant->second);
  status.fast_bytes = 4096;
  status.refused_pages[MEMSLUICE_REFUSED_PINNED] = 3;
  status.slow_histogram_pages[2] = 5;
  status.cold_bin = MEMSLUICE_BINS;
  return status;
}

Result<PlacementStatus> FakeModule::tenant_placement(uint64_t cgroup_id) {
  if (auto entered = enter("placement get"); !entered.ok()) return entered.error();
  auto tenant = tenants_.find(cgroup_id);
  if (tenant == tenants_.end()) return module_error(ENOENT, "placement get");
  return PlacementStatus{
      .placement = tenant->second.placement, .fallback_folios = 2, .spilled_folios = 1};
}

Result<std::unique_ptr<MigrationRequest>> FakeModule::migrate(const Migration& migration) {
  if (auto entered = enter("migrate"); !entered.ok()) return entered.error();
  if (migration.kind() == MEMSLUICE_MIGRATE_TENANT_PLACED) {
    auto tenant = tenants_.find(migration.cgroup_id);
    if (tenant == tenants_.end()) return module_error(ENOENT, "migrate");
    if (tenant->second.placement.channels.empty()) return module_error(ENODATA, "migrate");
  }
  auto request = std::make_shared<Request>();
  request->migration = migration;
  request->ended = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  request->status.size = sizeof(request->status);
  request->status.id = requests_.size() + 1;
  request->status.total_pages = 100;
  requests_[request->status.id] = request;
  return std::unique_ptr<MigrationRequest>(new FakeRequest(*this, std::move(request)));
}

void FakeModule::add_engine(const std::string& name, int rank,
                            const std::vector<std::string>& queues) {
  EngineInfo engine;
  name.copy(engine.status.name, sizeof(engine.status.name) - 1);
  engine.status.rank = rank;
  engine.status.queues = static_cast<uint32_t>(queues.size());
  for (const std::string& queue_name : queues) {
    memsluice_engine_queue queue = {};
    name.copy(queue.engine, sizeof(queue.engine) - 1);
    queue_name.copy(queue.name, sizeof(queue.name) - 1);
    queue.depth = 64;
    engine.queues.push_back(queue);
  }
  engines_.push_back(std::move(engine));
}

memsluice_engine_queue& FakeModule::engine_queue(const std::string& name) {
  for (EngineInfo& engine : engines_)
    for (memsluice_engine_queue& queue : engine.queues)
      if (engine_name(queue.name) == name) return queue;
  std::abort();
}

Result<std::vector<EngineInfo>> FakeModule::engines() {
  if (auto entered = enter("engine status"); !entered.ok()) return entered.error();
  const std::lock_guard guard(lock_);
  if ((features_ & MEMSLUICE_FEATURE_ENGINES) == 0) return module_error(ENOTTY, "engine status");
  return engines_;
}

Result<void> FakeModule::engine_act(const std::string& engine, const std::string& queue,
                                    memsluice_engine_action action) {
  if (auto entered = enter("engine act"); !entered.ok()) return entered.error();
  const std::lock_guard guard(lock_);
  if ((features_ & MEMSLUICE_FEATURE_ENGINES) == 0) return module_error(ENOTTY, "engine act");
  for (EngineInfo& known : engines_) {
    if (known.name() != engine) continue;
    if (known.queues.empty()) return module_error(EOPNOTSUPP, "engine act");
    for (memsluice_engine_queue& one : known.queues) {
      if (engine_name(one.name) != queue) continue;
      one.state = action == MEMSLUICE_ENGINE_TEST ? MEMSLUICE_QUEUE_UP : MEMSLUICE_QUEUE_DRAINED;
      return {};
    }
  }
  return module_error(ENOENT, "engine act");
}

Result<std::vector<memsluice_census_row>> FakeModule::census(std::optional<int> node) {
  if (auto entered = enter("census"); !entered.ok()) return entered.error();
  const std::lock_guard guard(lock_);
  auto rows = census_;
  std::erase_if(rows, [&](const memsluice_census_row& row) { return node && row.node != *node; });
  return rows;
}

Result<std::vector<memsluice_channel_status>> FakeModule::channels() {
  if (auto entered = enter("channel status"); !entered.ok()) return entered.error();
  const std::lock_guard guard(lock_);
  std::vector<memsluice_channel_status> channels;
  for (const auto& [node, channel] : channels_) channels.push_back(channel);
  return channels;
}

// Nodes 0 and 1 have memory, 2 and 3 can have some.
Result<memsluice_channel_add> FakeModule::channel_add(const memsluice_channel_add& add) {
  if (auto entered = enter("channel add"); !entered.ok()) return entered.error();
  const std::lock_guard guard(lock_);
  memsluice_channel_add added = add;
  if (added.node < 0 && added.length != 0) added.node = 2;
  const bool has_memory = added.node == 0 || added.node == 1;
  if (channels_.contains(added.node)) return module_error(EEXIST, "channel add");
  if (added.length != 0 && has_memory) return module_error(ENOTEMPTY, "channel add");
  if (added.node > 3 || (added.length == 0 && !has_memory))
    return module_error(ENODEV, "channel add");
  added.onlined_by = added.length != 0 ? MEMSLUICE_ONLINED_BY_MODULE : 0;
  memsluice_channel_status channel = {};
  channel.node = added.node;
  std::memcpy(channel.name, added.name, sizeof(channel.name));
  std::memcpy(channel.group, added.group, sizeof(channel.group));
  channel.start = added.start;
  channel.length = added.length;
  channel.block_bytes = uint64_t{128} << 20;
  channel.blocks = channel.online_blocks =
      static_cast<uint32_t>(added.length == 0 ? 2 : added.length / channel.block_bytes);
  channel.movable_blocks = added.length == 0 ? 0 : channel.blocks;
  channel.onlined_by = added.onlined_by;
  channels_[added.node] = channel;
  return added;
}

Result<ChannelRemoval> FakeModule::channel_remove(int node, Milliseconds deadline) {
  if (auto entered = enter("channel remove"); !entered.ok()) return entered.error();
  if (hold_removals_) {
    const timespec time = {.tv_sec = deadline.count() / 1000, .tv_nsec = 0};
    ChannelRemoval held{.os_error = ::nanosleep(&time, nullptr) == 0 ? ETIMEDOUT : EINTR};
    return held;
  }
  const std::lock_guard guard(lock_);
  if (auto why = std::exchange(refused_removal_, std::nullopt)) return *why;
  ChannelRemoval removal;
  removal.result.node = node;
  removal.result.moved_pages = 7;
  if (channels_.erase(node) == 0) removal.os_error = ENOENT;
  return removal;
}

}  // namespace memsluice
