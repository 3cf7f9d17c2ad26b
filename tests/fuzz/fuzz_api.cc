// SPDX-License-Identifier: GPL-2.0
// Whatever a client sends, it gets lines of JSON that answer it, and the daemon goes on.
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "daemon/api/fixture.h"
#include "daemon/api/server.h"

namespace memsluice {
namespace {

class Target : public ApiFixture {
 public:
  void run(std::string_view input) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    server_.add_client(Fd(ends[0]));
    Fd client(ends[1]);
    std::string answers;
    while (!input.empty()) {
      ssize_t said = ::send(client.get(), input.data(), input.size(), MSG_NOSIGNAL);
      if (said < 0 && errno != EAGAIN) break;  // hung up on
      if (said > 0) input.remove_prefix(said);
      turn();
      answers += heard(client);
    }
    ::shutdown(client.get(), SHUT_WR);
    for (int i = 0; i < 3; i++) turn();
    // Those who wait with a time limit get their answer as well.
    clock_.now += Milliseconds(1000);
    turn();
    answers += heard(client);
    check(answers);
    client.reset();
    turn();
    if (server_.clients() != 0) std::abort();
    end_requests();
  }

 private:
  static std::string heard(const Fd& client) {
    std::string text;
    char buffer[65536];
    for (;;) {
      ssize_t count = ::recv(client.get(), buffer, sizeof(buffer), 0);
      if (count <= 0) return text;
      text.append(buffer, count);
    }
  }

  static void check(std::string_view answers) {
    while (!answers.empty()) {
      size_t end = answers.find('\n');
      if (end == std::string_view::npos) std::abort();
      Json answer = Json::parse(answers.substr(0, end), nullptr, false);
      if (!answer.is_object() || !answer.contains("id")) std::abort();
      if (answer.contains("result") == answer.contains("error")) std::abort();
      if (answer.contains("error") && !error_from_json(answer.at("error"))) std::abort();
      answers.remove_prefix(end + 1);
    }
  }

  void end_requests() {
    for (const auto& [id, request] : module_.requests())
      if (request->open) module_.end_request(id, MEMSLUICE_REQUEST_DONE);
    turn();
  }

  Server server_{*loop_, *methods_, log_, [](const Peer&) { return true; }};
};

}  // namespace
}  // namespace memsluice

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static memsluice::Target target;
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
