// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "daemon/base/clock.h"
#include "daemon/base/fd.h"
#include "daemon/base/json.h"
#include "daemon/base/result.h"

namespace memsluice {

struct ClientOptions {
  std::string socket = "/run/memsluice/api";
  Milliseconds connect_timeout{5000};
  Milliseconds reply_timeout{10000};
  size_t reply_bytes_max = size_t{64} << 20;

  // Replies may take at least so long.
  ClientOptions with_patience(Milliseconds patience) const {
    ClientOptions options = *this;
    options.reply_timeout = std::max(reply_timeout, patience);
    return options;
  }
};

// A connection to the daemon: one call at a time, and none waits longer than the options say.
// After an error that is not the daemon's own answer the connection is closed.
class Client {
 public:
  // What answers there is a daemon that speaks this version of the API.
  static Result<Client> connect(const ClientOptions& options);

  Result<Json> call(std::string_view method, const Json& params = Json::object());

  // The result of `hello`.
  const Json& hello() const { return hello_; }

 private:
  Client(ClientOptions options, Fd socket)
      : options_(std::move(options)), socket_(std::move(socket)) {}

  Result<void> send(std::string_view line, Milliseconds deadline);
  Result<std::string> receive_line(Milliseconds deadline);
  Result<void> wait_for(short events, Milliseconds deadline);
  Error broken(std::string message, ErrorCode code = ErrorCode::kUnavailable);

  ClientOptions options_;
  Fd socket_;
  std::string received_;
  uint64_t next_id_ = 1;
  Json hello_;
};

}  // namespace memsluice
