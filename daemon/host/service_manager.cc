// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "daemon/base/fd.h"
#include "daemon/base/units.h"

namespace memsluice {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

ServiceManager ServiceManager::from_environment() {
  ServiceManager manager;
  manager.socket_path_ = environment("NOTIFY_SOCKET");
  std::string pid = environment("WATCHDOG_PID");
  auto watchdog_us = parse_number(environment("WATCHDOG_USEC"), 1, uint64_t{1} << 50);
  if (watchdog_us.ok() && (pid.empty() || pid == std::to_string(::getpid())))
    manager.watchdog_period_ = Milliseconds(std::max<uint64_t>(*watchdog_us / 2000, 1));
  return manager;
}

void ServiceManager::notify(std::string_view state) const {
  sockaddr_un address = {};
  if (socket_path_.empty() || socket_path_.size() >= sizeof(address.sun_path)) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_path_.data(), socket_path_.size());
  // A leading @ stands for the NUL of an abstract address.
  if (socket_path_.front() == '@') address.sun_path[0] = '\0';
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_path_.size());
  // Whoever asked to be told and does not listen is not worth stopping for.
  [[maybe_unused]] ssize_t sent = ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                                           reinterpret_cast<const sockaddr*>(&address), length);
}

}  // namespace memsluice
