// SPDX-License-Identifier: GPL-2.0
#include "daemon/api/server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "daemon/api/protocol.h"

namespace memsluice {
Result<Peer> peer_of(int socket) {
  ucred credentials = {};
  socklen_t length = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return errno_error(errno, "SO_PEERCRED", "peer");
  // SO_PEERCRED knows the first group only.
  std::vector<gid_t> groups(64);
  length = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  int got = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length);
  if (got != 0 && errno == ERANGE) {
    groups.resize(length / sizeof(gid_t));
    got = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length);
  }
  if (got != 0) return errno_error(errno, "SO_PEERGROUPS", "peer");
  groups.resize(length / sizeof(gid_t));
  groups.push_back(credentials.gid);
  return Peer{credentials.uid, std::move(groups)};
}

struct Server::Client {
  uint64_t id = 0;
  Peer peer;
  Fd socket;
  EventLoop::Watch watch;
  std::string received;
  std::string to_send;
  EventLoop::Timer send_timeout;
  Methods::Pending pending;
  bool waiting = false;  // for the answer of a method
  bool no_more = false;  // the client has said all it will say
  bool hang_up = false;  // as soon as everything is sent
  bool broken = false;   // at once
};

Server::Server(EventLoop& loop, Methods& methods, const Log& log, MayChange may_change,
               PeerLookup peer_lookup)
    : loop_(loop),
      methods_(methods),
      log_(log),
      may_change_(std::move(may_change)),
      peer_lookup_(std::move(peer_lookup)),
      listener_(loop, log, SOCK_NONBLOCK, [this](Fd socket) { add_client(std::move(socket)); }) {}

Result<void> Server::check_room(const Peer& peer) const {
  auto of_user = std::count_if(clients_.begin(), clients_.end(), [&](const auto& entry) {
    return entry.second->peer.uid == peer.uid;
  });
  const bool user_has_room = peer.uid == 0 || static_cast<size_t>(of_user) < kClientsPerUserMax;
  if (user_has_room && clients_.size() < kClientsMax) return {};
  return Error{.code = ErrorCode::kConflict,
               .object = fmt::format("user {}", peer.uid),
               .message = user_has_room ? "too many clients" : "too many clients of this user",
               .hint = "close some"};
}

void Server::add_client(Fd socket) {
  auto client = std::make_shared<Client>();
  client->id = next_id_++;
  client->socket = std::move(socket);
  auto peer = peer_lookup_(client->socket.get());
  auto room = peer.ok() ? check_room(*peer) : Result<void>(peer.error());
  if (!room.ok()) {
    send(*client, error_line(nullptr, room.error()));
    return;
  }
  client->peer = *std::move(peer);
  std::weak_ptr<Client> weak = client;
  auto watch = loop_.watch(client->socket.get(), EPOLLIN, [this, weak](uint32_t events) {
    if (ClientPointer held = weak.lock()) on_event(held, events);
  });
  if (!watch.ok()) {
    log_.error("{}", watch.error().describe());
    return;
  }
  client->watch = *std::move(watch);
  clients_[client->id] = std::move(client);
}

void Server::on_event(const ClientPointer& client, uint32_t events) {
  if (events & (EPOLLERR | EPOLLHUP)) client->broken = true;
  if (events & EPOLLOUT) flush(*client);
  if (events & EPOLLIN) read_from(*client);
  settle(client);
}

void Server::read_from(Client& client) {
  std::array<char, 16384> buffer;
  while (client.received.size() <= kRequestBytesMax) {
    ssize_t count = ::recv(client.socket.get(), buffer.data(), buffer.size(), 0);
    if (count > 0) {
      client.received.append(buffer.data(), count);
      continue;
    }
    if (count == 0) client.no_more = true;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) client.broken = true;
    return;
  }
}

void Server::answer_lines(const ClientPointer& client) {
  while (!client->waiting && !client->hang_up && !client->broken && client->to_send.empty()) {
    const size_t end = client->received.find('\n');
    if (std::min(end, client->received.size()) > kRequestBytesMax) {
      client->hang_up = true;
      send(*client, error_line(nullptr, {.code = ErrorCode::kBadRequest,
                                         .message = fmt::format("a request has at most {} bytes",
                                                                kRequestBytesMax)}));
      return;
    }
    if (end == std::string::npos) return;
    const std::string line = client->received.substr(0, end);
    client->received.erase(0, end + 1);
    answer(client, line);
  }
}

void Server::answer(const ClientPointer& client, std::string_view line) {
  Json id;
  bool not_json = false;
  auto request = parse_request(line, id, not_json);
  if (!request.ok()) {
    client->hang_up = not_json;
    send(*client, error_line(id, request.error()));
    return;
  }
  client->waiting = true;
  // Whether the answer comes before call() returns.
  auto at_once = std::make_shared<bool>(true);
  std::weak_ptr<Client> weak = client;
  auto pending = methods_.call(
      *request, may_change_(client->peer), [this, weak, id, at_once](const Result<Json>& result) {
        ClientPointer held = weak.lock();
        if (held == nullptr) return;
        held->waiting = false;
        held->pending.reset();
        send(*held, result.ok() ? result_line(id, *result) : error_line(id, result.error()));
        if (!*at_once) settle(held);
      });
  *at_once = false;
  if (client->waiting) client->pending = std::move(pending);
}

void Server::send(Client& client, const std::string& line) {
  client.to_send += line;
  flush(client);
}

void Server::flush(Client& client) {
  size_t sent = 0;
  while (sent < client.to_send.size()) {
    ssize_t count = ::send(client.socket.get(), client.to_send.data() + sent,
                           client.to_send.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) client.broken = true;
    if (count < 0) break;
    sent += count;
  }
  if (sent > 0) client.send_timeout.stop();
  client.to_send.erase(0, sent);
}

// Answers what there is to answer, and decides what to wait for next.
void Server::settle(const ClientPointer& client) {
  answer_lines(client);
  const bool sending = !client->to_send.empty();
  const bool finished = !sending && (client->hang_up || (client->no_more && !client->waiting));
  if (client->broken || finished) {
    clients_.erase(client->id);
    return;
  }
  if (sending && !client->send_timeout.is_set()) {
    std::weak_ptr<Client> weak = client;
    client->send_timeout = loop_.once(kSendTimeout, [this, weak] {
      ClientPointer held = weak.lock();
      if (held == nullptr) return;
      log_.warning("a client of user {} does not read its answers: hung up", held->peer.uid);
      clients_.erase(held->id);
    });
  }
  const bool reading = !sending && !client->waiting && !client->no_more;
  client->watch.set_events((reading ? EPOLLIN : 0u) | (sending ? EPOLLOUT : 0u));
}

}  // namespace memsluice
