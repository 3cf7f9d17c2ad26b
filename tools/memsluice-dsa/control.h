// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/base/event_loop.h"
#include "daemon/base/fd.h"
#include "daemon/base/json.h"
#include "daemon/base/listener.h"
#include "daemon/base/log.h"
#include "daemon/base/result.h"
#include "tools/memsluice-dsa/bus_server.h"
#include "tools/memsluice-dsa/device.h"

namespace memsluice::dsa {

// The methods of docs/memsluice-dsa.md: what the device does, and what shall go wrong with it.
class Control {
 public:
  Control(Device& device, BusServer& bus) : device_(device), bus_(bus) {}

  Result<Json> call(const std::string& method, const Json& parameters);
  // {"method": ..., "params": {...}} in, {"result": ...} or {"error": ...} out.
  std::string answer(std::string_view line);

 private:
  Device& device_;
  BusServer& bus_;
};

// A socket for them: a JSON object on each line, answered in order.
class ControlServer {
 public:
  ControlServer(EventLoop& loop, Control& control, const Log& log)
      : loop_(loop),
        control_(control),
        log_(log),
        listener_(loop, log, 0, [this](Fd socket) { add_client(std::move(socket)); }) {}

  Result<void> start(Fd listening) { return listener_.start(std::move(listening)); }

 private:
  struct Client {
    Fd socket;
    EventLoop::Watch watch;
    std::string read;
  };

  void add_client(Fd socket);
  void read_from(int key);

  EventLoop& loop_;
  Control& control_;
  const Log& log_;
  Listener listener_;
  std::map<int, Client> clients_;
};

}  // namespace memsluice::dsa
