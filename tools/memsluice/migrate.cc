// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/migrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "daemon/host/placement.h"
#include "tools/memsluice/exit_status.h"
#include "tools/memsluice/fields.h"
#include "tools/memsluice/render.h"

namespace memsluice {
namespace {

constexpr uint64_t kPollMs = 250;
constexpr Milliseconds kProgressAfter{1000};
constexpr Milliseconds kCancelWait{5000};

bool has_ended(const Json& request) {
  return text(request, "state") != "running";
}

// The bar that stands on the last line of a terminal while a request runs.
class Progress {
 public:
  explicit Progress(const Environment& environment)
      : environment_(environment), start_(SystemClock().monotonic()) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) environment_.err << kClearLine << std::flush;
  }

  void show(const Json& request) {
    const Milliseconds elapsed = SystemClock().monotonic() - start_;
    if (!environment_.err_is_terminal || elapsed < kProgressAfter) return;
    const double elapsed_s = static_cast<double>(elapsed.count()) / 1000;
    environment_.err << kClearLine
                     << progress_line(request, elapsed_s, environment_.columns - 1,
                                      environment_.page_bytes)
                     << std::flush;
    shown_ = true;
  }

 private:
  const Environment& environment_;
  const Milliseconds start_;
  bool shown_ = false;
};

Result<Json> call_request(Client& client, const char* method, const Json& params) {
  auto result = client.call(method, params);
  if (!result.ok()) return result.error();
  const Json& request = member(*result, "request");
  if (request.is_object() && number(request, "id") && text(request, "state") != "-") return request;
  return Error{.code = ErrorCode::kFailed,
               .object = method,
               .message = "the reply has no request in it",
               .hint = "memsluice request list shows what runs"};
}

Result<Json> wait_once(Client& client, uint64_t id) {
  return call_request(client, "request.wait", {{"id", id}, {"timeout_ms", kPollMs}});
}

Result<Json> wait_until_ended(Client& client, Json request, const Environment& environment) {
  Progress progress(environment);
  const uint64_t id = *number(request, "id");
  while (!has_ended(request) && environment.stop_signal() == 0) {
    progress.show(request);
    auto next = wait_once(client, id);
    if (!next.ok()) return next;
    request = std::move(*next);
  }
  return request;
}

Result<Json> cancel(Client& client, uint64_t id) {
  auto request = call_request(client, "request.cancel", {{"id", id}});
  const Milliseconds deadline = SystemClock().monotonic() + kCancelWait;
  while (request.ok() && !has_ended(*request) && SystemClock().monotonic() < deadline)
    request = wait_once(client, id);
  return request;
}

// A request that has failed ends the command as the same error of a call would.
Error ended_badly(const Json& request) {
  const auto error = error_from_json(member(request, "error"));
  if (error) return *error;
  return {.object = fmt::format("request {}", *number(request, "id")),
          .message = fmt::format("has ended as {}", text(request, "state"))};
}

int outcome(const Json& request, int signal, std::ostream& err) {
  if (text(request, "state") == "done") return 0;
  if (signal != 0 && text(request, "state") != "failed") return 128 + signal;
  const Error error = ended_badly(request);
  print_error(error, err);
  return exit_status(error.code);
}

// The lines of a census with what the tenant has on nodes that are none of its channels.
Result<Json> elsewhere(const std::string& cgroup, const Environment& environment) {
  auto client = Client::connect(environment.client.with_patience(kCensusPatience));
  if (!client.ok()) return client.error();
  auto tenant = client->call("tenant.get", {{"cgroup", cgroup}});
  if (!tenant.ok()) return tenant.error();
  auto channels = parse_channels(text(member(member(*tenant, "tenant"), "policy"), "channels"));
  if (!channels.ok()) return channels.error();
  auto census = client->call("census", {{"by_tenant", true}});
  if (!census.ok()) return census.error();
  Json left = Json::array();
  for (const Json& line : items(*census, "census")) {
    const auto node = number(line, "node");
    const bool is_channel = std::any_of(channels->begin(), channels->end(),
                                        [&](const Channel& one) { return one.node == node; });
    if (text(line, "tenant") == cgroup && !is_channel) left.push_back(line);
  }
  return left;
}

// Begins it and, unless it is detached, waits for its end. A signal cancels it.
Result<Json> begin_and_wait(const MigrateCommand& command, const Environment& environment) {
  auto client = Client::connect(environment.client);
  if (!client.ok()) return client.error();
  if (!command.tenant_set.is_null()) {
    auto set = client->call("tenant.set", command.tenant_set);
    if (!set.ok()) return set.error();
  }
  auto request = call_request(*client, command.method.c_str(), command.params);
  if (!request.ok() || command.detach) return request;
  request = wait_until_ended(*client, std::move(*request), environment);
  if (request.ok() && !has_ended(*request)) request = cancel(*client, *number(*request, "id"));
  return request;
}

}  // namespace

Result<int> run_migrate(const MigrateCommand& command, bool json, const Environment& environment) {
  auto request = begin_and_wait(command, environment);
  if (!request.ok()) return request.error();
  Json result = {{"request", *request}};
  if (command.method == "redistribute" && !command.detach) {
    auto left = elsewhere(text(command.params, "cgroup"), environment);
    if (!left.ok()) return left.error();
    result["elsewhere"] = *std::move(left);
  }
  environment.out << (json ? to_line(result) : render_moved(result, environment.page_bytes));
  if (command.detach) return 0;
  return outcome(*request, environment.stop_signal(), environment.err);
}

}  // namespace memsluice
