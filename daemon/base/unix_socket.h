// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <sys/stat.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <string_view>

#include "daemon/base/clock.h"
#include "daemon/base/fd.h"
#include "daemon/base/result.h"

namespace memsluice {

// Bytes of a socket's path.
constexpr size_t kSocketPathMax = sizeof(sockaddr_un::sun_path) - 1;

// A socket that is listening, in place of one that nobody listens on any more. It does not block.
Result<Fd> listen_at(const std::string& path, mode_t mode);

// A blocking connection to who listens there. It waits for @at_most until there is room for it, and
// then each time that it sends.
Result<Fd> connect_to(const std::string& path, std::optional<Milliseconds> at_most = {});

// How long a blocking socket waits for a peer that takes nothing.
void set_send_timeout(int socket, Milliseconds at_most);

// All of it, or an error; for blocking sockets.
Result<void> send_all(int socket, std::string_view data);

}  // namespace memsluice
