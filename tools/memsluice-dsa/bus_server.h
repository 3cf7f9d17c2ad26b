// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/base/event_loop.h"
#include "daemon/base/fd.h"
#include "daemon/base/listener.h"
#include "daemon/base/log.h"
#include "daemon/base/result.h"
#include "tools/memsluice-dsa/vfio_user.h"

namespace memsluice::dsa {

// The socket at which a virtual machine plugs the device in: one at a time.
class BusServer {
 public:
  BusServer(EventLoop& loop, VfioUser& protocol, const Log& log)
      : loop_(loop),
        protocol_(protocol),
        log_(log),
        listener_(loop, log, 0, [this](Fd client) { add_client(std::move(client)); }) {}

  Result<void> start(Fd listening) { return listener_.start(std::move(listening)); }
  bool has_client() const { return client_.valid(); }
  // As if the device were pulled out.
  void disconnect();

 private:
  void add_client(Fd client);
  void read_messages();
  // Return: false when there is no more to read, or nobody to read from.
  bool read_some();
  bool take_message();

  EventLoop& loop_;
  VfioUser& protocol_;
  const Log& log_;
  Listener listener_;
  Fd client_;
  EventLoop::Watch client_watch_;
  // The message that is on its way: header, payload, files.
  std::vector<uint8_t> message_;
  std::vector<Fd> files_;
};

}  // namespace memsluice::dsa
