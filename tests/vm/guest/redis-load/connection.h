// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <hiredis/hiredis.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/base/result.h"

namespace memsluice::guest {

struct Server {
  std::string unix_socket;  // if empty, host and port
  std::string host = "127.0.0.1";
  int port = 6379;

  std::string name() const {
    return unix_socket.empty() ? host + ":" + std::to_string(port) : unix_socket;
  }
};

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

inline std::string_view text_of(const redisReply& reply) {
  return reply.str == nullptr ? std::string_view() : std::string_view(reply.str, reply.len);
}

// One connection. append() only queues; flush() sends; receive() waits for the next reply in
// order. An error that the server replies is a reply, a broken connection is an Error.
class Connection {
 public:
  static Result<Connection> open(const Server& server);

  void append(std::initializer_list<std::string_view> arguments);
  Result<void> flush();
  Result<Reply> receive();

  // All three; a reply that is an error is an Error here.
  Result<Reply> command(std::initializer_list<std::string_view> arguments);

 private:
  struct FreeContext {
    void operator()(redisContext* context) const { redisFree(context); }
  };

  Connection(redisContext* context, std::string name) : context_(context), name_(std::move(name)) {}
  Error broken() const;

  std::unique_ptr<redisContext, FreeContext> context_;
  std::string name_;
};

}  // namespace memsluice::guest
