// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/engines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>

#include "daemon/base/json.h"
#include "daemon/host/files.h"

namespace memsluice {
namespace {

Result<std::vector<EngineInfo>> list_engines(Module& module) {
  auto info = module.info();
  if (!info.ok()) return std::move(info).error();
  if ((info->features & MEMSLUICE_FEATURE_ENGINES) == 0)
    return Error{.code = ErrorCode::kUnavailable,
                 .object = "engines",
                 .message = "the module that is loaded does not tell of its copy engines",
                 .hint =
                     "it is older than this daemon: load the one of its release; what there is "
                     "stands in /proc/memsluice/engines"};
  return module.engines();
}

bool has_queue(const EngineInfo& engine, const std::string& queue) {
  for (const memsluice_engine_queue& known : engine.queues)
    if (engine_name(known.name) == queue) return true;
  return false;
}

Error no_queue(const QueueName& name, const std::vector<EngineInfo>& engines) {
  std::vector<std::string> known;
  for (const EngineInfo& engine : engines)
    for (const memsluice_engine_queue& queue : engine.queues)
      known.push_back(fmt::format("{}/{}", engine.name(), engine_name(queue.name)));
  return {.code = ErrorCode::kNotFound,
          .object = name.queue,
          .message = name.engine.empty() ? "no engine has such a queue"
                                         : fmt::format("engine {} has no such queue", name.engine),
          .hint = known.empty() ? "there is none: docs/dsa.md says how a queue is configured"
                                : fmt::format("there are: {}", fmt::join(known, ", ")),
          .os_error = ENOENT};
}

Result<QueueName> find_queue(const QueueName& name, const std::vector<EngineInfo>& engines) {
  std::vector<std::string> holders;
  for (const EngineInfo& engine : engines) {
    if (!name.engine.empty() && engine.name() != name.engine) continue;
    if (!name.engine.empty() && engine.queues.empty())
      return Error{.code = ErrorCode::kBadRequest,
                   .object = name.engine,
                   .message = "is an engine without queues"};
    if (has_queue(engine, name.queue)) holders.push_back(engine.name());
  }
  if (holders.empty()) return no_queue(name, engines);
  if (holders.size() == 1) return QueueName{holders.front(), name.queue};
  return Error{.code = ErrorCode::kBadRequest,
               .object = name.queue,
               .message = fmt::format("{} have a queue of this name", fmt::join(holders, " and ")),
               .hint = fmt::format("say which: {}/{}", holders.front(), name.queue)};
}

Result<QueueName> act_on(Module& module, const QueueName& name, memsluice_engine_action action) {
  auto engines = list_engines(module);
  if (!engines.ok()) return std::move(engines).error();
  auto found = find_queue(name, *engines);
  if (!found.ok()) return found;
  auto done = module.engine_act(found->engine, found->queue, action);
  if (!done.ok()) return engine_act_error(done.error(), *found, action);
  return found;
}

// "dsa0" of the queue wq0.1 of the engine dsa; another engine's queues are of no such device.
std::string device_of(const QueueName& name) {
  const std::string number = dsa_device_number(name.queue);
  return name.engine == "dsa" && !number.empty() ? "dsa" + number : "DEVICE";
}

}  // namespace

Error engine_act_error(const Error& error, const QueueName& name, memsluice_engine_action action) {
  Error told{.code = error.code,
             .object = fmt::format("{}/{}", name.engine, name.queue),
             .message = error.message,
             .hint = error.hint,
             .os_error = error.os_error};
  const std::string reset = fmt::format("memsluice engine reset {}", device_of(name));
  switch (error.os_error) {
    case EIO:
      told.message = "a copy failed";
      told.hint = "dmesg names its status; the queue copies nothing until it passes a test";
      break;
    case EBADMSG:
      told.message = "what was copied differs from its source";
      told.hint = "do not use this device: drain its queues, and look at its health";
      break;
    case ETIMEDOUT:
      told.message = "a copy did not end in time";
      told.hint = "try again; if it stays so: " + reset;
      break;
    case EBUSY:
      told.message = action == MEMSLUICE_ENGINE_DRAIN
                         ? "copies no more, but what it had has not ended within two seconds: what "
                           "is late stays in quarantine"
                         : "holds descriptors that are late";
      told.hint = "what they may write to is kept unused until they end, or are reset: " + reset;
      break;
    case ENOMEM:
      told.message = "is not tested: there was no memory to copy";
      told.hint = "that says nothing of the queue: try again";
      break;
    case ENOENT:
      told.message = "is gone: its driver has taken it away, or the engine has been unloaded";
      told.hint = "memsluice engine list shows those there are";
      break;
    case EOPNOTSUPP:
      told.code = ErrorCode::kBadRequest;
      told.message = "the engine has no queues";
      told.hint.clear();
      break;
    default:
      break;
  }
  return told;
}

Result<std::unique_ptr<Engines>> Engines::create(Module& module, DsaDevices& devices,
                                                 EventLoop& loop, const Log& log) {
  auto background = Background::create(loop);
  if (!background.ok()) return std::move(background).error();
  return std::unique_ptr<Engines>(new Engines(module, devices, log, *std::move(background)));
}

Result<void> Engines::list(Reply<std::vector<EngineInfo>> reply) {
  return background_->run<std::vector<EngineInfo>>(
      [&module = module_] { return list_engines(module); }, std::move(reply));
}

Result<void> Engines::begin_change(std::string what) {
  if (!change_.empty())
    return Error{.code = ErrorCode::kConflict,
                 .object = what,
                 .message = fmt::format("{} is under way", change_),
                 .hint = "try again when it has ended"};
  change_ = std::move(what);
  return {};
}

Result<void> Engines::act(const QueueName& name, memsluice_engine_action action,
                          Reply<QueueName> reply) {
  const char* verb = action == MEMSLUICE_ENGINE_TEST ? "test" : "drain";
  if (auto begun = begin_change(fmt::format("the {} of {}", verb, name.queue)); !begun.ok())
    return begun;
  auto started = background_->run<QueueName>(
      [&module = module_, name, action] { return act_on(module, name, action); },
      [this, reply = std::move(reply)](const Result<QueueName>& done) {
        log_.info("{}: {}", change_, done.ok() ? "done" : done.error().describe());
        change_.clear();
        reply(done);
      });
  if (!started.ok()) change_.clear();
  return started;
}

Result<void> Engines::reset(const std::string& device, const std::string& saved_path,
                            Reply<DsaResetOutcome> reply) {
  if (auto begun = begin_change(fmt::format("the reset of {}", device)); !begun.ok()) return begun;
  auto started = background_->run<DsaResetPlan>(
      [&devices = devices_, device, saved_path] {
        return plan_dsa_reset(devices, device, saved_path);
      },
      [this, reply = std::move(reply)](const Result<DsaResetPlan>& plan) {
        carry_out(plan, reply);
      });
  if (!started.ok()) change_.clear();
  return started;
}

void Engines::carry_out(const Result<DsaResetPlan>& plan, const Reply<DsaResetOutcome>& reply) {
  auto finish = [this, reply](const Result<DsaResetOutcome>& outcome) {
    change_.clear();
    reply(outcome);
  };
  if (!plan.ok()) return finish(plan.error());
  const std::string& device = plan->wanted.device.name;
  // Before anything is touched: whatever happens now, an administrator can put it back.
  log_.warning("reset of {}: to be put back{}: {}", device,
               plan->from_file ? " from " + plan->saved_path : "",
               trimmed(to_line(saved_form(plan->wanted))));
  auto started = background_->run<DsaResetOutcome>(
      [&devices = devices_, plan = *plan] { return carry_out_dsa_reset(devices, plan); },
      [this, device, finish](const Result<DsaResetOutcome>& outcome) {
        tell(device, outcome);
        finish(outcome);
      });
  if (!started.ok()) finish(started.error());
}

void Engines::tell(const std::string& device, const Result<DsaResetOutcome>& outcome) const {
  if (!outcome.ok())
    log_.error("reset of {}: {}", device, outcome.error().describe());
  else
    log_.info("reset of {}: done, queues enabled: {}", device, fmt::join(outcome->queues, ", "));
}

}  // namespace memsluice
