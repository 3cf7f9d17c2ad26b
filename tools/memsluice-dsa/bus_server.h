// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/base/event_loop.h"
#include "daemon/base/fd.h"
#include "daemon/base/log.h"
#include "daemon/base/result.h"
#include "tools/memsluice-dsa/vfio_user.h"

namespace memsluice::dsa {

// The socket at which a virtual machine plugs the device in: one at a time.
class BusServer {
 public:
  BusServer(EventLoop& loop, VfioUser& protocol, const Log& log)
      : loop_(loop), protocol_(protocol), log_(log) {}

  Result<void> start(Fd listening);
  bool has_client() const { return client_.valid(); }
  // As if the device were pulled out.
  void disconnect();

 private:
  void accept_client();
  void read_messages();
  // Return: false when there is no more to read, or nobody to read from.
  bool read_some();
  bool take_message();
  bool send(const std::vector<uint8_t>& message) const;

  EventLoop& loop_;
  VfioUser& protocol_;
  const Log& log_;
  Fd listening_;
  EventLoop::Watch accept_watch_;
  Fd client_;
  EventLoop::Watch client_watch_;
  // The message that is on its way: header, payload, files.
  std::vector<uint8_t> message_;
  std::vector<Fd> files_;
};

}  // namespace memsluice::dsa
