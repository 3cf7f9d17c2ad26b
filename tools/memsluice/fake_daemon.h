// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/base/fd.h"
#include "daemon/base/json.h"
#include "daemon/base/temporary_directory.h"

namespace memsluice {

// Something that listens on a unix socket and answers as the test says, be it nonsense. It serves
// one connection after the other.
class FakeDaemon {
 public:
  // What is sent back, byte for byte; nothing: the connection is closed.
  using Handler = std::function<std::optional<std::string>(const Json& request)>;

  explicit FakeDaemon(Handler handler);
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  std::string socket() const { return directory_.path("/api"); }
  // Only to be looked at when no call is under way.
  const std::vector<Json>& requests() const { return requests_; }

 private:
  void serve();
  void serve_connection(const Fd& connection);
  bool readable(const Fd& fd) const;

  TemporaryDirectory directory_;
  Handler handler_;
  std::vector<Json> requests_;
  Fd listener_;
  Fd stop_;
  std::thread thread_;
};

std::string reply_line(const Json& request, const Json& result);
std::string error_line(const Json& request, const Error& error);

// Answers `hello` as memsluiced does, and the methods given with these results.
FakeDaemon::Handler answers(std::map<std::string, Json> results);

}  // namespace memsluice
