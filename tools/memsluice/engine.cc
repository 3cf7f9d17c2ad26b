// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/engine.h"

#include <fmt/format.h>

#include <istream>
#include <optional>
#include <ostream>

#include "tools/memsluice/exit_status.h"
#include "tools/memsluice/fields.h"
#include "tools/memsluice/format.h"
#include "tools/memsluice/render.h"

namespace memsluice {
namespace {

// A queue has its own deadline, of up to 10 seconds for a copy; a device waits for all of its
// queues, and its drivers.
constexpr Milliseconds kQueueTimeout{60000};
constexpr Milliseconds kResetTimeout{300000};

Result<std::vector<Json>> all_queues(Client& client) {
  auto result = client.call("engine.list");
  if (!result.ok()) return result.error();
  std::vector<Json> queues;
  for (const Json& engine : items(*result, "engines")) {
    for (const Json& queue : items(engine, "queues")) {
      queues.push_back({{"engine", text(engine, "name")}, {"queue", text(queue, "name")}});
    }
  }
  if (!queues.empty()) return queues;
  return Error{.code = ErrorCode::kNotFound,
               .object = "QUEUE",
               .message = "no engine has a queue",
               .hint = "configure one: docs/dsa.md says how"};
}

// What is about the daemon is so for every queue.
bool is_about_all(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kDenied ||
         error.code == ErrorCode::kUnknownMethod;
}

std::string full_name(const Json& queue) {
  const std::string name = printable(text(queue, "name"));
  const std::string engine = text(queue, "engine", "");
  return engine.empty() ? name : printable(engine) + '/' + name;
}

void tell(const EngineQueuesCommand& command, const Json& queue, const std::optional<Error>& error,
          std::ostream& out) {
  const char* done = command.method == "engine.test" ? "passed" : "drained";
  out << full_name(queue) << ": ";
  if (!error) {
    out << done << '\n';
  } else {
    out << "failed: " << printable(error->message);
    if (!error->hint.empty()) out << " (" << printable(error->hint) << ')';
    out << '\n';
  }
  // The next one may take long.
  out << std::flush;
}

bool confirmed(const std::string& device, const Environment& environment) {
  environment.err << "All queues of " << device << ", those of other drivers too, are disabled, "
                  << "and what they copy is lost.\nReset " << device << "? [y/N] " << std::flush;
  std::string answer;
  if (environment.in == nullptr || !std::getline(*environment.in, answer)) return false;
  return answer == "y" || answer == "Y" || answer == "yes";
}

Result<bool> may_reset(const EngineResetCommand& command, const Environment& environment) {
  if (command.yes) return true;
  if (environment.in_is_terminal && environment.err_is_terminal) {
    return confirmed(command.device, environment);
  }
  return Error{.code = ErrorCode::kBadRequest,
               .object = "--yes",
               .message = fmt::format("is missing, and there is no terminal to ask on: a reset of "
                                      "{} is for all who use it",
                                      command.device),
               .hint = "memsluice engine reset --help"};
}

}  // namespace

Result<int> run_engine_queues(const EngineQueuesCommand& command, bool json,
                              const Environment& environment) {
  auto client = Client::connect(environment.client.with_patience(kQueueTimeout));
  if (!client.ok()) return client.error();
  auto queues = command.queues.empty() ? all_queues(*client) : Result(command.queues);
  if (!queues.ok()) return queues.error();
  Json outcomes = Json::array();
  int status = 0;
  for (const Json& params : *queues) {
    auto result = client->call(command.method, params);
    if (!result.ok() && is_about_all(result.error())) return result.error();
    Json queue = {{"engine", member(params, "engine")}, {"name", member(params, "queue")}};
    if (result.ok() && member(*result, "queue").is_object()) queue = member(*result, "queue");
    std::optional<Error> error;
    if (!result.ok()) error = result.error();
    if (error && status == 0) status = exit_status(error->code);
    if (!json) tell(command, queue, error, environment.out);
    queue["error"] = error ? error_to_json(*error) : Json(nullptr);
    outcomes.push_back(std::move(queue));
  }
  if (json) environment.out << to_line({{"queues", outcomes}});
  return status;
}

Result<int> run_engine_reset(const EngineResetCommand& command, bool json,
                             const Environment& environment) {
  auto may = may_reset(command, environment);
  if (!may.ok()) return may.error();
  if (!*may) {
    return Error{.code = ErrorCode::kFailed,
                 .object = command.device,
                 .message = "is not reset: nothing has been changed"};
  }
  auto client = Client::connect(environment.client.with_patience(kResetTimeout));
  if (!client.ok()) return client.error();
  auto result = client->call("engine.reset", {{"device", command.device}});
  if (!result.ok()) return result.error();
  environment.out << (json ? to_line(*result)
                           : render_result("engine.reset", {}, *result, environment.page_bytes));
  return 0;
}

}  // namespace memsluice
