// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/background.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/log.h"
#include "daemon/host/cgroups.h"
#include "daemon/host/kernel_module.h"

namespace memsluice {

inline constexpr Milliseconds kRemoveDeadlineDefault{60000};

// A node that is there, or memory that is withheld from the kernel.
struct ChannelSpec {
  std::string name = {};
  std::string group = {};
  std::optional<int> node = {};  // none, with memory: as the firmware's tables say
  uint64_t start = 0;
  uint64_t length_bytes = 0;  // 0: the node is there

  bool operator==(const ChannelSpec&) const = default;
};

// What has become of a channel that is gone.
struct RemovedChannel {
  std::string name = {};
  int node = -1;
  uint64_t moved_pages = 0;
};

// What an errno of MEMSLUICE_IOC_CHANNEL_ADD means, and what to do.
Error channel_add_error(const Error& error, const ChannelSpec& spec);

// Likewise of MEMSLUICE_IOC_CHANNEL_REMOVE, with what stays and why. `cgroups` names who holds it.
Error channel_remove_error(const ChannelRemoval& removal, const std::string& name,
                           const std::vector<Cgroup>& cgroups);

// The channels of the module. What takes long runs beside the loop, and is answered by it later:
// exactly once, unless this has ended before. Its end interrupts removals: they are undone.
class Channels {
 public:
  template <typename T>
  using Reply = std::function<void(const Result<T>&)>;

  // The loop, the module and the log must outlive it.
  static Result<std::unique_ptr<Channels>> create(Module& module, std::string cgroup_root,
                                                  EventLoop& loop, const Log& log);
  ~Channels();
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  Result<std::vector<memsluice_channel_status>> list() { return module_.channels(); }

  // An error of these is the answer: none comes later.
  Result<void> add(const ChannelSpec& spec, Reply<memsluice_channel_status> reply);
  Result<void> remove(const std::string& name, Milliseconds deadline, Reply<RemovedChannel> reply);
  bool busy() const { return background_->running() != 0; }

 private:
  struct Interruptible;

  Channels(Module& module, std::string cgroup_root, const Log& log,
           std::unique_ptr<Background> background);

  Module& module_;
  Cgroups cgroups_;
  const Log& log_;
  std::shared_ptr<Interruptible> removals_;
  std::unique_ptr<Background> background_;
};

}  // namespace memsluice
