// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/guest/redis-load/connection.h"

#include <array>

namespace memsluice::guest {

Result<Connection> Connection::open(const Server& server) {
  redisContext* context = server.unix_socket.empty()
                              ? redisConnect(server.host.c_str(), server.port)
                              : redisConnectUnix(server.unix_socket.c_str());
  if (context == nullptr) {
    return Error{ErrorCode::kFailed, server.name(), "out of memory", {}, 0, {}};
  }
  Connection connection(context, server.name());
  if (context->err != 0) return connection.broken().with_hint("is redis-server running there?");
  return connection;
}

void Connection::append(std::initializer_list<std::string_view> arguments) {
  std::array<const char*, 8> texts;
  std::array<size_t, 8> sizes;
  int count = 0;
  for (const std::string_view argument : arguments) {
    texts.at(static_cast<size_t>(count)) = argument.data();
    sizes.at(static_cast<size_t>(count)) = argument.size();
    ++count;
  }
  redisAppendCommandArgv(context_.get(), count, texts.data(), sizes.data());
}

Result<void> Connection::flush() {
  for (int done = 0; done == 0;) {
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK) return broken();
  }
  return {};
}

Result<Reply> Connection::receive() {
  void* reply = nullptr;
  if (redisGetReply(context_.get(), &reply) != REDIS_OK) return broken();
  return Reply(static_cast<redisReply*>(reply));
}

Result<Reply> Connection::command(std::initializer_list<std::string_view> arguments) {
  append(arguments);
  auto reply = receive();
  if (reply.ok() && (*reply)->type == REDIS_REPLY_ERROR) {
    return Error{ErrorCode::kFailed, name_, std::string(text_of(**reply)), {}, 0, {}};
  }
  return reply;
}

Error Connection::broken() const {
  return {ErrorCode::kUnavailable, name_, context_->errstr, {}, 0, {}};
}

}  // namespace memsluice::guest
