// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/unix_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

namespace memsluice {
namespace {

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address = {};
  if (path.empty() || path.size() > kSocketPathMax)
    return Error{.code = ErrorCode::kBadRequest,
                 .object = path,
                 .message = fmt::format("a socket's path has 1 to {} bytes", kSocketPathMax)};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int connect_socket(int socket, const sockaddr_un& address) {
  return ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

// Whether anybody listens there.
bool is_alive(const sockaddr_un& address) {
  Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // EAGAIN: its backlog is full, so somebody has one.
  return connect_socket(probe.get(), address) == 0 || errno == EAGAIN;
}

}  // namespace

Result<Fd> listen_at(const std::string& path, mode_t mode) {
  auto address = address_of(path);
  if (!address.ok()) return std::move(address).error();
  struct stat status;
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode))
      return Error{.code = ErrorCode::kConflict,
                   .object = path,
                   .message = "is there and is no socket",
                   .hint = "name another path, or remove it"};
    if (is_alive(*address))
      return Error{.code = ErrorCode::kConflict,
                   .object = path,
                   .message = "somebody listens there already"};
    ::unlink(path.c_str());
  }
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno_error(errno, "socket", path);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0)
    return errno_error(errno, "bind", path);
  if (::chmod(path.c_str(), mode) != 0) return errno_error(errno, "chmod", path);
  if (::listen(socket.get(), SOMAXCONN) != 0) return errno_error(errno, "listen", path);
  return socket;
}

Result<Fd> connect_to(const std::string& path, std::optional<Milliseconds> at_most) {
  auto address = address_of(path);
  if (!address.ok()) return std::move(address).error();
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errno_error(errno, "socket", path);
  // Bounds the wait for room in the backlog, which poll cannot see.
  if (at_most) set_send_timeout(socket.get(), *at_most);
  if (connect_socket(socket.get(), *address) != 0) return errno_error(errno, "connect", path);
  return socket;
}

void set_send_timeout(int socket, Milliseconds at_most) {
  const timeval wait = {.tv_sec = at_most.count() / 1000, .tv_usec = at_most.count() % 1000 * 1000};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

Result<void> send_all(int socket, std::string_view data) {
  while (!data.empty()) {
    const ssize_t sent = ::send(socket, data.data(), data.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno_error(errno, "send", "socket");
    data.remove_prefix(static_cast<size_t>(sent));
  }
  return {};
}

}  // namespace memsluice
