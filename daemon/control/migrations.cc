// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/migrations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "daemon/control/desired_state.h"
#include "daemon/host/numa.h"

namespace memsluice {
namespace {

// The module cuts a range at the end of the address space.
constexpr uint64_t kWholeAddressSpace = ~uint64_t{0} << 16;

Result<Fd> open_process(int pid) {
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd.valid()) return pidfd;
  const std::string object = fmt::format("pid {}", pid);
  if (errno == ESRCH)
    return Error{.code = ErrorCode::kNotFound,
                 .object = object,
                 .message = "no such process",
                 .os_error = ESRCH};
  if (errno == EINVAL || errno == ENOENT)
    return Error{.code = ErrorCode::kBadRequest,
                 .object = object,
                 .message = "is a thread",
                 .hint = "name its process: the memory is the same",
                 .os_error = errno};
  return errno_error(errno, "pidfd_open", object);
}

Result<void> check_range(const ProcessMigration& migration) {
  auto wrong = [](const char* key, std::string message) {
    return Error{.code = ErrorCode::kBadRequest, .object = key, .message = std::move(message)};
  };
  if (migration.address.has_value() != migration.length_bytes.has_value())
    return wrong(migration.address ? "length_bytes" : "address",
                 "is missing: a range needs both, all of the process neither");
  if (!migration.address) return {};
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (*migration.address % page_bytes != 0)
    return wrong("address", fmt::format("must be a multiple of {}", page_bytes));
  if (*migration.length_bytes == 0 || *migration.length_bytes % page_bytes != 0)
    return wrong("length_bytes", fmt::format("must be a multiple of {}, not 0", page_bytes));
  if (*migration.address + *migration.length_bytes < *migration.address)
    return wrong("length_bytes", "leads past the end of the address space");
  return {};
}

}  // namespace

Migrations::Migrations(Module& module, const Paths& paths, EventLoop& loop, const Log& log)
    : module_(module), loop_(loop), log_(log), paths_(paths), cgroups_(paths.cgroup_root) {}

Result<void> Migrations::check_node(int node) const {
  auto nodes = read_numa_nodes(paths_);
  if (!nodes.ok()) return std::move(nodes).error();
  std::vector<int> ids;
  for (const NumaNode& known : *nodes) {
    if (known.id == node) return {};
    ids.push_back(known.id);
  }
  return Error{.code = ErrorCode::kNotFound,
               .object = fmt::format("node {}", node),
               .message = "there is no such node with memory",
               .hint = fmt::format("there are: {}", fmt::join(ids, ", "))};
}

Result<RequestView> Migrations::start(const ProcessMigration& migration) {
  if (auto checked = check_range(migration); !checked.ok()) return checked.error();
  if (auto checked = check_node(migration.target_node); !checked.ok()) return checked.error();
  auto pidfd = open_process(migration.pid);
  if (!pidfd.ok()) return std::move(pidfd).error();
  RequestView view{.object = fmt::format("pid {}", migration.pid),
                   .target_node = migration.target_node};
  return start(std::move(view),
               {.pidfd = pidfd->get(),
                .address = migration.address.value_or(0),
                .length_bytes = migration.length_bytes.value_or(kWholeAddressSpace),
                .all_mappings = migration.all_mappings,
                .target_node = migration.target_node,
                .mib_per_s = migration.mib_per_s});
}

Result<RequestView> Migrations::start(const TenantMigration& migration) {
  for (int node : {migration.source_node, migration.target_node})
    if (auto checked = check_node(node); !checked.ok()) return checked.error();
  if (migration.source_node == migration.target_node)
    return Error{.code = ErrorCode::kBadRequest,
                 .object = "target_node",
                 .message = "is the source node as well"};
  auto found = cgroups_.find(migration.cgroup);
  if (!found.ok()) return std::move(found).error();
  RequestView view{.object = migration.cgroup, .target_node = migration.target_node};
  return start(std::move(view), {.cgroup_id = found->id,
                                 .source_node = migration.source_node,
                                 .target_node = migration.target_node,
                                 .mib_per_s = migration.mib_per_s});
}

Result<RequestView> Migrations::start(const Redistribution& redistribution) {
  const std::string& cgroup = redistribution.cgroup;
  if (redistribution.source_node)
    if (auto checked = check_node(*redistribution.source_node); !checked.ok())
      return checked.error();
  auto found = cgroups_.find(cgroup);
  if (!found.ok()) return std::move(found).error();
  auto started = start(
      {.object = cgroup, .on_touch = redistribution.on_touch, .upkeep = redistribution.upkeep},
      {.cgroup_id = found->id,
       .source_node = redistribution.source_node.value_or(-1),
       .on_touch = redistribution.on_touch,
       .mib_per_s = redistribution.mib_per_s});
  if (started.ok()) return started;
  if (started.error().os_error == ENODATA)
    return Error{.code = ErrorCode::kConflict,
                 .object = cgroup,
                 .message = "has no channels",
                 .hint = fmt::format("memsluice tenant set {} --channels gives it some", cgroup),
                 .os_error = ENODATA};
  if (started.error().code == ErrorCode::kNotFound) return no_tenant(cgroup);
  return started;
}

Result<RequestView> Migrations::start(RequestView view, const Migration& migration) {
  if (requests_.size() - ended_.size() >= kRunningMax)
    return Error{.code = ErrorCode::kConflict,
                 .object = view.object,
                 .message = fmt::format("{} migration requests are running", kRunningMax),
                 .hint = "wait for one to end, or cancel one"};
  auto running = module_.migrate(migration);
  if (!running.ok()) {
    Error error = std::move(running).error();
    if (error.object.empty()) error.object = view.object;
    if (error.os_error == EACCES)
      error.hint = "the node must be in the process's cpuset: see cpuset.mems of its cgroup";
    return error;
  }
  const uint64_t id = next_id_++;
  view.id = id;
  view.kind = migration.kind();
  Request& request = requests_[id];
  request.view = std::move(view);
  request.running = *std::move(running);
  auto watch =
      loop_.watch(request.running->fd(), EPOLLIN, [this, id](uint32_t) { on_readable(id); });
  if (!watch.ok()) {
    requests_.erase(id);
    return std::move(watch).error();
  }
  request.watch = *std::move(watch);
  refresh(request);
  log_.info("request {}: {} to {}", id, request.view.object,
            request.view.target_node ? fmt::format("node {}", *request.view.target_node)
                                     : std::string("its channels"));
  return request.view;
}

void Migrations::refresh(Request& request) {
  if (request.running == nullptr) return;
  auto status = request.running->status();
  if (status.ok()) {
    request.view.status = *status;
    if (status->state == MEMSLUICE_REQUEST_FAILED)
      request.view.error = errno_error(-status->error, "migrate", request.view.object);
  } else {
    request.view.status.state = MEMSLUICE_REQUEST_FAILED;
    request.view.error = std::move(status).error();
  }
}

void Migrations::on_readable(uint64_t id) {
  auto found = requests_.find(id);
  if (found == requests_.end()) return;
  Request& request = found->second;
  refresh(request);
  if (!request.view.has_ended()) return;
  request.watch.stop();
  // Only an open descriptor pins the module: from here on it can be unloaded.
  request.running.reset();
  log_.info("request {}: ended, {} of {} pages moved", id, request.view.status.moved_pages,
            request.view.status.seen_pages);

  auto waiters = std::move(request.waiters);
  ended_.push_back(id);
  if (ended_.size() > kEndedKept) {
    requests_.erase(ended_.front());
    ended_.pop_front();
  }
  for (const auto& waiting : waiters)
    if (Waiter waiter = waiting.lock()) (*waiter)();
}

std::vector<RequestView> Migrations::list() {
  std::vector<RequestView> views;
  for (auto& [id, request] : requests_) {
    refresh(request);
    views.push_back(request.view);
  }
  return views;
}

Result<RequestView> Migrations::get(uint64_t id) {
  auto found = requests_.find(id);
  if (found == requests_.end())
    return Error{.code = ErrorCode::kNotFound,
                 .object = fmt::format("request {}", id),
                 .message = "there is no such request, or it ended long ago",
                 .hint = "request.list has those there are"};
  refresh(found->second);
  return found->second.view;
}

Result<RequestView> Migrations::cancel(uint64_t id) {
  auto view = get(id);
  if (!view.ok()) return view;
  Request& request = requests_.at(id);
  if (request.running == nullptr) return view;
  auto cancelled = request.running->cancel();
  if (!cancelled.ok()) {
    Error error = std::move(cancelled).error();
    error.object = request.view.object;
    return error;
  }
  return get(id);
}

Migrations::Waiter Migrations::when_ended(uint64_t id, EndCallback callback) {
  auto waiter = std::make_shared<EndCallback>(std::move(callback));
  if (auto found = requests_.find(id); found != requests_.end()) {
    auto& waiters = found->second.waiters;
    std::erase_if(waiters, [](const auto& other) { return other.expired(); });
    waiters.push_back(waiter);
  }
  return waiter;
}

}  // namespace memsluice
