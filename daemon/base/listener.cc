// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/listener.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace memsluice {

Result<void> Listener::start(Fd listening) {
  listening_ = std::move(listening);
  auto watch = loop_.watch(listening_.get(), EPOLLIN, [this](uint32_t) { accept_all(); });
  if (!watch.ok()) return std::move(watch).error();
  watch_ = *std::move(watch);
  return {};
}

void Listener::accept_all() {
  for (;;) {
    Fd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | socket_flags_));
    if (socket.valid()) {
      on_connection_(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) {
      // Out of descriptors or memory: who waits would wake us again at once, for nothing.
      log_.error("accept: {}", std::strerror(errno));
      watch_.set_events(0);
      pause_ = loop_.once(Milliseconds(1000), [this] { watch_.set_events(EPOLLIN); });
    }
    return;
  }
}

}  // namespace memsluice
