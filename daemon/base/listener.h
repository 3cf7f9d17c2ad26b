// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <functional>

#include "daemon/base/event_loop.h"
#include "daemon/base/fd.h"
#include "daemon/base/log.h"
#include "daemon/base/result.h"

namespace memsluice {

// Takes the connections to a listening socket. While there are no descriptors or no memory for
// more, it tries again once a second.
class Listener {
 public:
  using OnConnection = std::function<void(Fd socket)>;

  // @socket_flags: of accept4(2), for each connection; it is closed on exec in any case.
  Listener(EventLoop& loop, const Log& log, int socket_flags, OnConnection on_connection)
      : loop_(loop),
        log_(log),
        socket_flags_(socket_flags),
        on_connection_(std::move(on_connection)) {}

  // @listening does not block.
  Result<void> start(Fd listening);

 private:
  void accept_all();

  EventLoop& loop_;
  const Log& log_;
  const int socket_flags_;
  const OnConnection on_connection_;
  Fd listening_;
  EventLoop::Watch watch_;
  EventLoop::Timer pause_;
};

}  // namespace memsluice
