// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/api/methods.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/fd.h"
#include "daemon/base/listener.h"
#include "daemon/base/log.h"
#include "daemon/base/result.h"

namespace memsluice {

// Who is at the other end, as the kernel says.
struct Peer {
  uid_t uid = static_cast<uid_t>(-1);
  std::vector<gid_t> groups;
};

Result<Peer> peer_of(int socket);

// Takes requests from many clients and answers each in order.
//
// No client can make it hold much: a request has a greatest size, the next one is read only when
// the answer to the last one has been taken, and who does not take it for long is hung up on.
class Server {
 public:
  using PeerLookup = std::function<Result<Peer>(int socket)>;
  using MayChange = std::function<bool(const Peer&)>;

  static constexpr size_t kClientsMax = 512;
  // One user cannot lock the others out.
  static constexpr size_t kClientsPerUserMax = 64;
  static constexpr Milliseconds kSendTimeout{10000};

  Server(EventLoop& loop, Methods& methods, const Log& log, MayChange may_change,
         PeerLookup peer_lookup = peer_of);

  Result<void> start(Fd listening) { return listener_.start(std::move(listening)); }
  // A client whose socket is already there.
  void add_client(Fd socket);
  size_t clients() const { return clients_.size(); }

 private:
  struct Client;
  using ClientPointer = std::shared_ptr<Client>;

  Result<void> check_room(const Peer& peer) const;
  void on_event(const ClientPointer& client, uint32_t events);
  void read_from(Client& client);
  void answer_lines(const ClientPointer& client);
  void answer(const ClientPointer& client, std::string_view line);
  void send(Client& client, const std::string& line);
  void flush(Client& client);
  void settle(const ClientPointer& client);

  EventLoop& loop_;
  Methods& methods_;
  const Log& log_;
  MayChange may_change_;
  PeerLookup peer_lookup_;
  Listener listener_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, ClientPointer> clients_;
};

}  // namespace memsluice
