// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/fake_daemon.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>

namespace memsluice {

FakeDaemon::FakeDaemon(Handler handler) : handler_(std::move(handler)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket().copy(address.sun_path, sizeof(address.sun_path) - 1);
  listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  stop_ = Fd(eventfd(0, EFD_CLOEXEC));
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener_.get(), 4) != 0) {
    std::abort();
  }
  thread_ = std::thread([this] { serve(); });
}

FakeDaemon::~FakeDaemon() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

bool FakeDaemon::readable(const Fd& fd) const {
  pollfd entries[] = {{.fd = fd.get(), .events = POLLIN, .revents = 0},
                      {.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  while (poll(entries, 2, -1) < 0) continue;
  return entries[1].revents == 0;
}

void FakeDaemon::serve() {
  while (readable(listener_)) {
    const Fd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.valid()) serve_connection(connection);
  }
}

void FakeDaemon::serve_connection(const Fd& connection) {
  std::string received;
  while (readable(connection)) {
    char buffer[4096];
    const ssize_t count = recv(connection.get(), buffer, sizeof(buffer), 0);
    if (count <= 0) return;
    received.append(buffer, static_cast<size_t>(count));
    for (size_t end; (end = received.find('\n')) != received.npos; received.erase(0, end + 1)) {
      requests_.push_back(Json::parse(received.substr(0, end), nullptr, false));
      const auto reply = handler_(requests_.back());
      if (!reply) return;
      if (send(connection.get(), reply->data(), reply->size(), MSG_NOSIGNAL) < 0) return;
    }
  }
}

std::string reply_line(const Json& request, const Json& result) {
  return to_line({{"id", request["id"]}, {"result", result}});
}

std::string error_line(const Json& request, const Error& error) {
  return to_line({{"id", request["id"]}, {"error", error_to_json(error)}});
}

FakeDaemon::Handler answers(std::map<std::string, Json> results) {
  results.try_emplace(
      "hello", Json{{"version", MEMSLUICE_VERSION}, {"api_version", 1}, {"may_change", true}});
  return [results = std::move(results)](const Json& request) -> std::optional<std::string> {
    const auto found = results.find(request["method"]);
    if (found != results.end()) return reply_line(request, found->second);
    return error_line(request, {.code = ErrorCode::kUnknownMethod,
                                .object = request["method"],
                                .message = "no such method"});
  };
}

}  // namespace memsluice
