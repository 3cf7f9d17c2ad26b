// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "daemon/base/unix_socket.h"
#include "tools/memsluice/fields.h"

namespace memsluice {
namespace {

constexpr uint64_t kApiVersion = 1;
constexpr size_t kReplyDepthMax = 16;
constexpr const char* kStartHint = "start the daemon: systemctl start memsluiced";
constexpr const char* kLookHint =
    "look at the daemon: systemctl status memsluiced; journalctl -u memsluiced";

std::string permission_hint(const std::string& path) {
  struct stat status {};
  const group* owner = stat(path.c_str(), &status) == 0 ? getgrgid(status.st_gid) : nullptr;
  if (owner == nullptr || status.st_gid == 0) return "run it as root";
  return fmt::format("run it as root, or join the group: adduser USER {}", owner->gr_name);
}

// What to do about it.
Error connect_error(const Error& error, const std::string& path) {
  Error result{.code = ErrorCode::kUnavailable, .object = path, .os_error = error.os_error};
  switch (error.os_error) {
    case ENOENT:
      result.message = "no such socket: the daemon does not run";
      result.hint = kStartHint;
      break;
    case ECONNREFUSED:
      result.message = "nobody listens: the daemon has ended";
      result.hint = kStartHint;
      break;
    case EAGAIN:
      result.message = "the daemon takes no connection";
      result.hint = kLookHint;
      break;
    case EACCES:
    case EPERM:
      result.code = ErrorCode::kDenied;
      result.message = "no permission to use this socket";
      result.hint = permission_hint(path);
      break;
    default:
      result.message = error.message;
      result.hint = "--socket names the socket of the daemon";
  }
  return result;
}

Result<Fd> connect_socket(const ClientOptions& options) {
  const std::string& path = options.socket;
  if (path.empty() || path.size() > kSocketPathMax) {
    return Error{
        .code = ErrorCode::kBadRequest,
        .object = "--socket",
        .message = fmt::format("\"{}\" is no socket path: 1 to {} bytes", path, kSocketPathMax)};
  }
  auto socket = connect_to(path, options.connect_timeout);
  if (!socket.ok()) return connect_error(socket.error(), path);
  if (fcntl(socket->get(), F_SETFL, O_NONBLOCK) != 0) return errno_error(errno, "fcntl", path);
  return socket;
}

}  // namespace

Result<Client> Client::connect(const ClientOptions& options) {
  auto socket = connect_socket(options);
  if (!socket.ok()) return socket.error();
  Client client(options, std::move(*socket));
  auto hello = client.call("hello");
  if (!hello.ok()) return hello.error();
  client.hello_ = std::move(*hello);
  const auto version = number(client.hello_, "api_version");
  if (!version) return client.broken("what answers there is not memsluiced", ErrorCode::kFailed);
  if (*version != kApiVersion) {
    return client
        .broken(fmt::format("the daemon speaks version {} of the API, this command {}", *version,
                            kApiVersion))
        .with_hint("install daemon and command of the same version");
  }
  return client;
}

Result<Json> Client::call(std::string_view method, const Json& params) {
  if (!socket_.valid()) return broken("the connection is closed");
  const uint64_t id = next_id_++;
  Json request = {{"id", id}, {"method", method}};
  if (!params.empty()) request["params"] = params;
  const Milliseconds deadline = SystemClock().monotonic() + options_.reply_timeout;
  if (auto sent = send(to_line(request), deadline); !sent.ok()) return sent.error();
  auto line = receive_line(deadline);
  if (!line.ok()) return line.error();

  auto reply = parse_json(*line, kReplyDepthMax);
  if (!reply.ok()) return broken("the reply is " + reply.error().message, ErrorCode::kFailed);
  const Json& reply_id = member(*reply, "id");
  const auto error = error_from_json(member(*reply, "error"));
  // A request that the daemon could not read has no id for it.
  if (error && (reply_id == id || reply_id.is_null())) return *error;
  if (reply_id != id || !member(*reply, "result").is_object()) {
    return broken("what came is no reply to the request", ErrorCode::kFailed);
  }
  return std::move((*reply)["result"]);
}

Result<void> Client::send(std::string_view line, Milliseconds deadline) {
  while (!line.empty()) {
    const ssize_t count = ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (count > 0) {
      line.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      if (auto ready = wait_for(POLLOUT, deadline); !ready.ok()) return ready;
    } else if (errno != EINTR) {
      return broken(fmt::format("send: {}", std::strerror(errno)));
    }
  }
  return {};
}

Result<std::string> Client::receive_line(Milliseconds deadline) {
  size_t searched = 0;
  while (true) {
    const size_t end = received_.find('\n', searched);
    if (end != received_.npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    searched = received_.size();
    if (searched > options_.reply_bytes_max) {
      return broken(fmt::format("the reply is longer than {} bytes", options_.reply_bytes_max),
                    ErrorCode::kFailed);
    }
    if (auto ready = wait_for(POLLIN, deadline); !ready.ok()) return ready.error();
    char buffer[65536];
    const ssize_t count = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
    if (count > 0) {
      received_.append(buffer, static_cast<size_t>(count));
    } else if (count == 0) {
      return broken("the daemon closed the connection without a full reply");
    } else if (errno != EAGAIN && errno != EINTR) {
      return broken(fmt::format("recv: {}", std::strerror(errno)));
    }
  }
}

Result<void> Client::wait_for(short events, Milliseconds deadline) {
  pollfd entry{.fd = socket_.get(), .events = events, .revents = 0};
  while (true) {
    const auto left = std::max(Milliseconds(0), deadline - SystemClock().monotonic());
    const int ready = poll(&entry, 1, static_cast<int>(left.count()));
    if (ready > 0) return {};
    if (ready == 0) {
      return broken(fmt::format("no reply within {} s",
                                static_cast<double>(options_.reply_timeout.count()) / 1000));
    }
    if (errno != EINTR) return broken(fmt::format("poll: {}", std::strerror(errno)));
  }
}

Error Client::broken(std::string message, ErrorCode code) {
  socket_.reset();
  return {
      .code = code, .object = options_.socket, .message = std::move(message), .hint = kLookHint};
}

}  // namespace memsluice
