// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/control.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "daemon/base/unix_socket.h"

namespace memsluice::dsa {
namespace {

constexpr size_t kLineMax = 1 << 16;
constexpr size_t kDepthMax = 8;
constexpr size_t kClientsMax = 16;
constexpr Milliseconds kReplyTimeout{5000};

Result<uint64_t> only_number(const Json& parameters, const char* key, uint64_t high) {
  ObjectReader reader(parameters);
  const uint64_t value = reader.require(key, reader.number(key, 0, high));
  if (auto finished = reader.finish(); !finished.ok()) return finished.error();
  return value;
}

Result<Json> nothing(const Result<void>& done) {
  if (!done.ok()) return done.error();
  return Json::object();
}

Result<Json> hold(Device& device, const Json& parameters, bool held) {
  auto engine = only_number(parameters, "engine", Shape::kEnginesMax - 1);
  if (!engine.ok()) return std::move(engine).error();
  return nothing(device.hold(static_cast<unsigned>(*engine), held));
}

Result<Json> inject(Device& device, const Json& parameters) {
  auto rule = rule_from_json(parameters);
  if (!rule.ok()) return std::move(rule).error();
  return Json{{"id", device.injection().add(*rule)}};
}

Result<Json> forget(Device& device, const Json& parameters) {
  if (parameters.empty()) {
    device.injection().clear();
    return Json::object();
  }
  auto id = only_number(parameters, "id", UINT64_MAX);
  if (!id.ok()) return std::move(id).error();
  if (device.injection().remove(*id)) return Json::object();
  return Error{.code = ErrorCode::kNotFound, .object = "id", .message = "there is no such rule"};
}

Result<Json> halt(Device& device, const Json& parameters) {
  Json rule = parameters;
  rule["do"] = "halt";
  auto read = rule_from_json(rule);
  if (!read.ok()) return std::move(read).error();
  device.fail(read->reset);
  return Json::object();
}

Result<Json> trace(Device& device, const Json& parameters) {
  auto entries = only_number(parameters, "entries", Statistics::kTraceMax);
  if (!entries.ok()) return std::move(entries).error();
  device.statistics().trace(*entries);
  return Json::object();
}

}  // namespace

Result<Json> Control::call(const std::string& method, const Json& parameters) {
  if (method == "status") {
    Json status = device_.status();
    status["plugged_in"] = bus_.has_client();
    return status;
  }
  if (method == "statistics") return device_.statistics().to_json();
  if (method == "inject") return inject(device_, parameters);
  if (method == "injections") return device_.injection().list();
  if (method == "forget") return forget(device_, parameters);
  if (method == "hold") return hold(device_, parameters, true);
  if (method == "release") return hold(device_, parameters, false);
  if (method == "halt") return halt(device_, parameters);
  if (method == "trace") return trace(device_, parameters);
  if (method == "read-trace") return device_.statistics().trace_to_json();
  if (method == "pull-out") {
    bus_.disconnect();
    return Json::object();
  }
  return Error{.code = ErrorCode::kUnknownMethod,
               .object = method,
               .message =
                   "is none of status, statistics, inject, injections, forget, hold, "
                   "release, halt, trace, read-trace, pull-out"};
}

std::string Control::answer(std::string_view line) {
  const auto call_it = [&]() -> Result<Json> {
    auto request = parse_json(line, kDepthMax);
    if (!request.ok()) return request;
    if (!request->is_object() || !request->contains("method") || !(*request)["method"].is_string())
      return Error{.code = ErrorCode::kBadRequest,
                   .object = "request",
                   .message = R"(is no object with a "method")"};
    const Json parameters = request->value("params", Json::object());
    if (!parameters.is_object())
      return Error{
          .code = ErrorCode::kBadRequest, .object = "params", .message = "is not an object"};
    return call((*request)["method"], parameters);
  };
  const auto result = call_it();
  return to_line(result.ok() ? Json{{"result", *result}}
                             : Json{{"error", error_to_json(result.error())}});
}

void ControlServer::add_client(Fd socket) {
  if (clients_.size() == kClientsMax) {
    log_.warning("more than {} clients of the control socket: one is turned away", kClientsMax);
    return;
  }
  set_send_timeout(socket.get(), kReplyTimeout);
  const int key = socket.get();
  auto watch = loop_.watch(key, EPOLLIN, [this, key](uint32_t) { read_from(key); });
  if (!watch.ok()) {
    log_.error("{}", watch.error().describe());
    return;
  }
  clients_[key] = {.socket = std::move(socket), .watch = *std::move(watch), .read = {}};
}

void ControlServer::read_from(int key) {
  Client& client = clients_[key];
  std::array<char, 4096> buffer;
  const ssize_t got = ::recv(key, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  bool stays = got > 0;
  if (stays) client.read.append(buffer.data(), static_cast<size_t>(got));
  for (size_t end; stays && (end = client.read.find('\n')) != std::string::npos;) {
    stays = send_all(key, control_.answer(std::string_view(client.read).substr(0, end))).ok();
    client.read.erase(0, end + 1);
  }
  if (!stays || client.read.size() > kLineMax) clients_.erase(key);
}

}  // namespace memsluice::dsa
