// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/background.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/log.h"
#include "daemon/control/dsa_reset.h"
#include "daemon/host/dsa_devices.h"
#include "daemon/host/kernel_module.h"

namespace memsluice {

struct QueueName {
  std::string engine = {};  // empty: whichever has such a queue
  std::string queue = {};

  bool operator==(const QueueName&) const = default;
};

// What an errno of MEMSLUICE_IOC_ENGINE_ACT means for a queue, and what to do.
Error engine_act_error(const Error& error, const QueueName& name, memsluice_engine_action action);

// The copy engines of the module, and the DSA devices under them. What is asked here may wait for a
// device for seconds, so it runs beside the loop, and is answered by it later: exactly once, unless
// this has ended before.
class Engines {
 public:
  template <typename T>
  using Reply = std::function<void(const Result<T>&)>;

  // The loop, the module, the devices and the log must outlive it.
  static Result<std::unique_ptr<Engines>> create(Module& module, DsaDevices& devices,
                                                 EventLoop& loop, const Log& log);

  // An error of these is the answer: none comes later. Of act() and reset() one runs at a time.
  Result<void> list(Reply<std::vector<EngineInfo>> reply);
  Result<void> act(const QueueName& name, memsluice_engine_action action, Reply<QueueName> reply);
  Result<void> reset(const std::string& device, const std::string& saved_path,
                     Reply<DsaResetOutcome> reply);
  bool busy() const { return background_->running() != 0; }

 private:
  Engines(Module& module, DsaDevices& devices, const Log& log,
          std::unique_ptr<Background> background)
      : module_(module), devices_(devices), log_(log), background_(std::move(background)) {}

  Result<void> begin_change(std::string what);
  void carry_out(const Result<DsaResetPlan>& plan, const Reply<DsaResetOutcome>& reply);
  void tell(const std::string& device, const Result<DsaResetOutcome>& outcome) const;

  Module& module_;
  DsaDevices& devices_;
  const Log& log_;
  std::string change_;  // what runs that changes something
  std::unique_ptr<Background> background_;
};

}  // namespace memsluice
