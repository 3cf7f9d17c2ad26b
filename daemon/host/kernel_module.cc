// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/kernel_module.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace memsluice {
namespace {

constexpr std::array kFeatureNames = {
    std::pair{MEMSLUICE_FEATURE_MIGRATE, "migrate"},
    std::pair{MEMSLUICE_FEATURE_MIGRATE_TENANT, "migrate_tenant"},
    std::pair{MEMSLUICE_FEATURE_HOTNESS_SCAN, "hotness_scan"},
    std::pair{MEMSLUICE_FEATURE_HOTNESS_SECONDARY, "hotness_secondary"},
    std::pair{MEMSLUICE_FEATURE_TIERING, "tiering"},
    std::pair{MEMSLUICE_FEATURE_TENANT_EVENTS, "tenant_events"},
    std::pair{MEMSLUICE_FEATURE_MIGRATE_BATCH, "migrate_batch"},
    std::pair{MEMSLUICE_FEATURE_ENGINES, "engines"},
    std::pair{MEMSLUICE_FEATURE_CENSUS, "census"},
    std::pair{MEMSLUICE_FEATURE_PLACEMENT, "placement"},
    std::pair{MEMSLUICE_FEATURE_HOTPLUG, "hotplug"},
    std::pair{MEMSLUICE_FEATURE_REDISTRIBUTE, "redistribute"},
};

constexpr std::array<const char*, MEMSLUICE_REFUSALS> kRefusalNames = {
    "absent",    "pinned", "busy",   "writeback",   "unmovable", "hugetlb",
    "no_memory", "shared", "failed", "not_allowed", "policy"};

constexpr std::array<const char*, MEMSLUICE_FRAME_KINDS> kFrameKindNames = {
    "anon", "shmem", "file", "hugetlb", "kernel", "pool", "free", "poisoned", "reserved"};

// More than most hosts have; one with more is counted twice.
constexpr size_t kCensusRows = 4096;

Error not_loaded(const std::string& device, int os_error) {
  return {.code = ErrorCode::kUnavailable,
          .object = device,
          .message = fmt::format("the module is not loaded: open: {}", std::strerror(os_error)),
          .hint = "load it: modprobe memsluice",
          .os_error = os_error};
}

template <typename Argument>
Result<int> call(const Fd& fd, unsigned long number, const char* name, Argument* argument) {
  int result = ::ioctl(fd.get(), number, argument);
  if (result < 0) return module_error(errno, name);
  return result;
}

class KernelMigrationRequest : public MigrationRequest {
 public:
  explicit KernelMigrationRequest(Fd fd) : fd_(std::move(fd)) {}

  int fd() const override { return fd_.get(); }

  Result<memsluice_request_status> status() override {
    memsluice_request_status status = {};
    status.size = sizeof(status);
    auto called = call(fd_, MEMSLUICE_IOC_REQUEST_STATUS, "request status", &status);
    if (!called.ok()) return std::move(called).error();
    return status;
  }

  Result<void> cancel() override {
    auto called = call<void>(fd_, MEMSLUICE_IOC_REQUEST_CANCEL, "request cancel", nullptr);
    if (!called.ok()) return std::move(called).error();
    return {};
  }

 private:
  Fd fd_;
};

// False: there is none at this index.
template <typename Argument>
Result<bool> call_with_index(const Fd& fd, unsigned long number, const char* name, uint32_t index,
                             Argument& argument) {
  argument.size = sizeof(argument);
  argument.index = index;
  auto called = call(fd, number, name, &argument);
  if (called.ok()) return true;
  if (called.error().os_error == ENOENT) return false;
  return std::move(called).error();
}

// With the NUL; false if there is no room for it.
bool put_name(const std::string& name, char (&room)[MEMSLUICE_ENGINE_NAME_BYTES]) {
  if (name.empty() || name.size() >= sizeof(room)) return false;
  name.copy(room, name.size());
  return true;
}

class KernelModule : public Module {
 public:
  explicit KernelModule(std::string device) : device_(std::move(device)) {}

  Result<ModuleInfo> info() override {
    auto fd = open_device();
    if (!fd.ok()) return std::move(fd).error();
    memsluice_version version = {};
    version.size = sizeof(version);
    auto called = call(*fd, MEMSLUICE_IOC_VERSION, "version", &version);
    if (!called.ok()) return std::move(called).error();
    if (version.abi_version != MEMSLUICE_ABI_VERSION)
      return Error{.code = ErrorCode::kUnavailable,
                   .object = device_,
                   .message = fmt::format("the module speaks version {} of the ABI, this daemon {}",
                                          version.abi_version, MEMSLUICE_ABI_VERSION),
                   .hint = "install both from the same release"};
    struct stat status;
    // devtmpfs makes a new node, with a new inode number, each time the module is loaded.
    if (::fstat(fd->get(), &status) != 0) return errno_error(errno, "fstat", device_);
    return ModuleInfo{
        .release = std::string(version.release, strnlen(version.release, sizeof(version.release))),
        .abi_version = version.abi_version,
        .features = version.features,
        .instance = status.st_ino};
  }

  Result<uint64_t> tenant_set(const Fd& cgroup, const Policy& policy) override {
    struct stat status;
    if (::fstat(cgroup.get(), &status) != 0) return errno_error(errno, "fstat", {});
    auto before = tenant_status(status.st_ino);
    memsluice_tenant_set set = {};
    set.cgroup_fd = cgroup.get();
    set.policy = to_kernel(policy);
    auto called = open_and_call(MEMSLUICE_IOC_TENANT_SET, "tenant set", set);
    if (!called.ok()) return std::move(called).error();
    auto placed = place(set.cgroup_id, policy.placement);
    if (placed.ok()) return set.cgroup_id;
    if (before.ok()) {
      set.policy = before->policy;
      called = open_and_call(MEMSLUICE_IOC_TENANT_SET, "tenant set", set);
    } else {
      [[maybe_unused]] auto cleared = tenant_clear(set.cgroup_id);
    }
    return std::move(placed).error();
  }

  Result<void> tenant_clear(uint64_t cgroup_id) override {
    memsluice_tenant_clear clear = {};
    clear.cgroup_id = cgroup_id;
    auto called = open_and_call(MEMSLUICE_IOC_TENANT_CLEAR, "tenant clear", clear);
    if (!called.ok()) return std::move(called).error();
    return {};
  }

  Result<std::vector<uint64_t>> tenant_list() override {
    std::vector<uint64_t> ids(64);
    for (;;) {
      memsluice_tenant_list list = {};
      list.capacity = static_cast<uint32_t>(ids.size());
      list.ids = reinterpret_cast<uint64_t>(ids.data());
      auto called = open_and_call(MEMSLUICE_IOC_TENANT_LIST, "tenant list", list);
      if (!called.ok()) return std::move(called).error();
      const bool complete = list.count <= ids.size();
      ids.resize(list.count);
      if (complete) return ids;
    }
  }

  Result<memsluice_tenant_status> tenant_status(uint64_t cgroup_id) override {
    memsluice_tenant_status status = {};
    status.cgroup_id = cgroup_id;
    auto called = open_and_call(MEMSLUICE_IOC_TENANT_STATUS, "tenant status", status);
    if (!called.ok()) return std::move(called).error();
    return status;
  }

  Result<PlacementStatus> tenant_placement(uint64_t cgroup_id) override {
    memsluice_placement placement = {};
    placement.cgroup_id = cgroup_id;
    auto called = open_and_call(MEMSLUICE_IOC_PLACEMENT_GET, "placement get", placement);
    if (!called.ok()) {
      // It has none, or is too old to have any.
      const int os_error = called.error().os_error;
      if (os_error == ENODATA || os_error == ENOTTY) return PlacementStatus();
      return std::move(called).error();
    }
    PlacementStatus status{.placement = {.granule_order = placement.granule_order},
                           .fallback_folios = placement.fallback_folios,
                           .spilled_folios = placement.spilled_folios};
    for (uint32_t i = 0; i < placement.count && i < MEMSLUICE_CHANNELS_MAX; i++)
      status.placement.channels.push_back(
          {placement.channels[i].node, placement.channels[i].weight});
    return status;
  }

  Result<std::unique_ptr<MigrationRequest>> migrate(const Migration& migration) override {
    memsluice_migrate migrate = {};
    migrate.kind = migration.kind();
    migrate.flags = MEMSLUICE_MIGRATE_ASYNC;
    if (migration.all_mappings) migrate.flags |= MEMSLUICE_MIGRATE_ALL_MAPPINGS;
    if (migration.on_touch) migrate.flags |= MEMSLUICE_MIGRATE_ON_TOUCH;
    migrate.mib_per_s = migration.mib_per_s;
    migrate.pidfd = migration.pidfd;
    migrate.cgroup_id = migration.cgroup_id;
    migrate.source_node = migration.source_node;
    migrate.target_node = migration.target_node;
    migrate.address = migration.address;
    migrate.length = migration.length_bytes;
    auto fd = open_and_call(MEMSLUICE_IOC_MIGRATE, "migrate", migrate);
    if (!fd.ok()) return std::move(fd).error();
    return std::unique_ptr<MigrationRequest>(new KernelMigrationRequest(Fd(*fd)));
  }

  Result<std::vector<EngineInfo>> engines() override {
    auto fd = open_device();
    if (!fd.ok()) return std::move(fd).error();
    std::vector<EngineInfo> engines;
    for (uint32_t index = 0;; index++) {
      EngineInfo engine;
      auto there =
          call_with_index(*fd, MEMSLUICE_IOC_ENGINE_STATUS, "engine status", index, engine.status);
      if (!there.ok()) return std::move(there).error();
      if (!*there) return engines;
      auto queues = queues_of(*fd, engine);
      if (!queues.ok()) return std::move(queues).error();
      engine.queues = *std::move(queues);
      engines.push_back(std::move(engine));
    }
  }

  Result<void> engine_act(const std::string& engine, const std::string& queue,
                          memsluice_engine_action action) override {
    memsluice_engine_act act = {};
    act.action = action;
    if (!put_name(engine, act.engine) || !put_name(queue, act.queue))
      return module_error(ENOENT, "engine act");
    auto called = open_and_call(MEMSLUICE_IOC_ENGINE_ACT, "engine act", act);
    if (!called.ok()) return std::move(called).error();
    return {};
  }

  Result<std::vector<memsluice_census_row>> census(std::optional<int> node) override {
    std::vector<memsluice_census_row> rows(kCensusRows);
    for (;;) {
      memsluice_census census = {};
      census.node = node.value_or(-1);
      census.rows = reinterpret_cast<uint64_t>(rows.data());
      census.capacity = static_cast<uint32_t>(rows.size());
      census.row_size = sizeof(memsluice_census_row);
      auto called = open_and_call(MEMSLUICE_IOC_CENSUS, "census", census);
      if (!called.ok()) return std::move(called).error();
      const bool complete = census.count <= rows.size();
      // Cgroups come meanwhile.
      rows.resize(complete ? census.count : census.count + kCensusRows);
      if (complete) return rows;
    }
  }

  Result<std::vector<memsluice_channel_status>> channels() override {
    auto fd = open_device();
    if (!fd.ok()) return std::move(fd).error();
    std::vector<memsluice_channel_status> channels;
    for (uint32_t index = 0;; index++) {
      memsluice_channel_status channel = {};
      auto there =
          call_with_index(*fd, MEMSLUICE_IOC_CHANNEL_STATUS, "channel status", index, channel);
      if (!there.ok()) return std::move(there).error();
      if (!*there) return channels;
      channels.push_back(channel);
    }
  }

  Result<memsluice_channel_add> channel_add(const memsluice_channel_add& add) override {
    memsluice_channel_add added = add;
    auto called = open_and_call(MEMSLUICE_IOC_CHANNEL_ADD, "channel add", added);
    if (!called.ok()) return std::move(called).error();
    return added;
  }

  Result<ChannelRemoval> channel_remove(int node, Milliseconds deadline) override {
    ChannelRemoval removal;
    removal.result.node = node;
    removal.result.deadline_ms = static_cast<uint32_t>(deadline.count());
    auto called = open_and_call(MEMSLUICE_IOC_CHANNEL_REMOVE, "channel remove", removal.result);
    // What the module has refused, it explains.
    if (!called.ok() && called.error().code == ErrorCode::kUnavailable)
      return std::move(called).error();
    if (!called.ok()) removal.os_error = called.error().os_error;
    return removal;
  }

 private:
  static Result<std::vector<memsluice_engine_queue>> queues_of(const Fd& fd,
                                                               const EngineInfo& engine) {
    std::vector<memsluice_engine_queue> queues;
    if (engine.status.queues == 0) return queues;
    for (uint32_t index = 0;; index++) {
      memsluice_engine_queue queue = {};
      std::memcpy(queue.engine, engine.status.name, sizeof(queue.engine));
      auto there = call_with_index(fd, MEMSLUICE_IOC_ENGINE_QUEUE, "engine queue", index, queue);
      if (!there.ok()) return std::move(there).error();
      if (!*there) return queues;
      queues.push_back(queue);
    }
  }

  // Not what is there already: its counts would begin anew.
  Result<void> place(uint64_t cgroup_id, const Placement& wanted) {
    auto now = tenant_placement(cgroup_id);
    if (now.ok() && now->placement == wanted) return {};
    memsluice_placement placement = {};
    placement.cgroup_id = cgroup_id;
    placement.count = static_cast<uint32_t>(wanted.channels.size());
    placement.granule_order = wanted.granule_order;
    for (size_t i = 0; i < wanted.channels.size() && i < MEMSLUICE_CHANNELS_MAX; i++)
      placement.channels[i] = {wanted.channels[i].node, wanted.channels[i].weight};
    auto called = open_and_call(MEMSLUICE_IOC_PLACEMENT_SET, "placement set", placement);
    if (called.ok()) return {};
    if (called.error().os_error == ENOENT) return std::move(called).error();
    return placement_error(called.error().os_error);
  }

  Result<Fd> open_device() const {
    Fd fd(::open(device_.c_str(), O_RDWR | O_CLOEXEC));
    if (fd.valid()) return fd;
    if (errno == ENOENT || errno == ENXIO || errno == ENODEV) return not_loaded(device_, errno);
    return errno_error(errno, "open", device_);
  }

  template <typename Argument>
  Result<int> open_and_call(unsigned long number, const char* name, Argument& argument) const {
    auto fd = open_device();
    if (!fd.ok()) return std::move(fd).error();
    argument.size = sizeof(argument);
    return call(*fd, number, name, &argument);
  }

  std::string device_;
};

}  // namespace

Error module_error(int os_error, std::string_view call) {
  Error error = errno_error(os_error, call, {});
  switch (os_error) {
    case ENOTTY:
    case E2BIG:
      error.code = ErrorCode::kUnavailable;
      error.hint =
          "the module that is loaded is older than this daemon: load the one of its release";
      break;
    case EOPNOTSUPP:
    case ENOSYS:
      error.code = ErrorCode::kUnavailable;
      error.hint = "the module cannot do this on this kernel: its log says why (dmesg)";
      break;
    case EPERM:
      error.hint = "the daemon needs CAP_SYS_ADMIN, CAP_SYS_NICE and CAP_SYS_PTRACE";
      break;
    default:
      break;
  }
  return error;
}

memsluice_policy to_kernel(const Policy& policy) {
  memsluice_policy kernel = {};
  kernel.flags = policy.tiering ? MEMSLUICE_POLICY_TIERING : 0;
  kernel.promote_mib_per_s = policy.promote_mib_per_s;
  kernel.demote_mib_per_s = policy.demote_mib_per_s;
  kernel.fast_limit_bytes = policy.fast_limit_bytes;
  return kernel;
}

Policy from_kernel(const memsluice_policy& policy) {
  return {.tiering = (policy.flags & MEMSLUICE_POLICY_TIERING) != 0,
          .fast_limit_bytes = policy.fast_limit_bytes,
          .promote_mib_per_s = policy.promote_mib_per_s,
          .demote_mib_per_s = policy.demote_mib_per_s};
}

std::vector<std::string> ModuleInfo::feature_names() const {
  std::vector<std::string> names;
  for (const auto& [bit, name] : kFeatureNames)
    if (features & bit) names.emplace_back(name);
  return names;
}

memsluice_migrate_kind Migration::kind() const {
  if (pidfd >= 0) return MEMSLUICE_MIGRATE_RANGE;
  return target_node < 0 ? MEMSLUICE_MIGRATE_TENANT_PLACED : MEMSLUICE_MIGRATE_TENANT_NODE;
}

std::string engine_name(const char (&name)[MEMSLUICE_ENGINE_NAME_BYTES]) {
  return {name, strnlen(name, sizeof(name))};
}

std::string channel_name(const char (&name)[MEMSLUICE_CHANNEL_NAME_BYTES]) {
  return {name, strnlen(name, sizeof(name))};
}

bool put_channel_name(const std::string& name, char (&room)[MEMSLUICE_CHANNEL_NAME_BYTES]) {
  if (name.size() >= sizeof(room)) return false;
  name.copy(room, name.size());
  return true;
}

std::string EngineInfo::name() const {
  return engine_name(status.name);
}

std::string refusal_name(size_t index) {
  // A newer module may have reasons that this daemon has no name for.
  return index < kRefusalNames.size() ? kRefusalNames[index] : fmt::format("reason_{}", index);
}

std::string frame_kind_name(size_t index) {
  return index < kFrameKindNames.size() ? kFrameKindNames[index] : fmt::format("kind_{}", index);
}

std::unique_ptr<Module> open_kernel_module(std::string device) {
  return std::make_unique<KernelModule>(std::move(device));
}

}  // namespace memsluice
