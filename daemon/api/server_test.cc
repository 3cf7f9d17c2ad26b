// SPDX-License-Identifier: GPL-2.0
#include "daemon/api/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "daemon/api/fixture.h"
#include "daemon/base/unix_socket.h"

namespace memsluice {
namespace {

using testing::HasSubstr;

class ServerTest : public testing::Test, protected ApiFixture {
 protected:
  ServerTest() {
    server_.emplace(
        *loop_, *methods_, log_, [](const Peer& peer) { return peer.uid == 0; },
        [this](int) { return Result<Peer>(peer_); });
  }

  Fd connect() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    server_->add_client(Fd(ends[0]));
    return Fd(ends[1]);
  }
  static void say(const Fd& client, std::string_view text) {
    ASSERT_EQ(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // What has come; "EOF" at the end if the server hung up.
  std::string heard(const Fd& client) {
    for (int i = 0; i < 4; i++) turn();
    std::string text;
    char buffer[4096];
    for (;;) {
      ssize_t count = ::recv(client.get(), buffer, sizeof(buffer), 0);
      if (count > 0) text.append(buffer, count);
      if (count < 0 && errno == EAGAIN) return text;
      if (count <= 0) return text + "EOF";
    }
  }
  static std::string request(int id, const std::string& method, const std::string& params = "{}") {
    return "{\"id\":" + std::to_string(id) + ",\"method\":\"" + method + "\",\"params\":" + params +
           "}\n";
  }

  Peer peer_{.uid = 0, .groups = {}};
  std::optional<Server> server_;
};

TEST_F(ServerTest, AnswersInTheOrderOfTheRequests) {
  Fd client = connect();
  say(client, request(1, "request.list") + request(2, "nonsense") + request(3, "request.list"));
  std::string answers = heard(client);
  EXPECT_LT(answers.find("\"id\":1"), answers.find("\"id\":2"));
  EXPECT_LT(answers.find("\"id\":2"), answers.find("\"id\":3"));
  EXPECT_THAT(answers, testing::EndsWith("\"id\":3,\"result\":{\"requests\":[]}}\n"));
}

TEST_F(ServerTest, ARequestMayComeInPieces) {
  Fd client = connect();
  const std::string text = request(1, "request.list");
  for (char c : text) {
    say(client, std::string_view(&c, 1));
    if (c != '\n') {
      EXPECT_EQ(heard(client), "");
    }
  }
  EXPECT_EQ(heard(client), "{\"id\":1,\"result\":{\"requests\":[]}}\n");
}

TEST_F(ServerTest, AfterABadRequestTheConnectionGoesOn) {
  Fd client = connect();
  say(client, "{\"id\":1}\n");
  EXPECT_THAT(heard(client), HasSubstr("\"bad_request\""));
  say(client, request(2, "request.list"));
  EXPECT_THAT(heard(client), HasSubstr("\"id\":2,\"result\""));
}

TEST_F(ServerTest, AfterWhatIsNoJsonItDoesNot) {
  Fd client = connect();
  say(client, "GET / HTTP/1.1\n" + request(2, "request.list"));
  EXPECT_EQ(heard(client),
            "{\"error\":{\"code\":\"bad_request\",\"message\":\"not JSON\",\"object\":\"\"},"
            "\"id\":null}\nEOF");
  Fd deep = connect();
  say(deep, std::string(9, '[') + std::string(9, ']') + "\n");
  EXPECT_THAT(heard(deep), HasSubstr("nested more than 8 deep"));
  EXPECT_EQ(server_->clients(), 0u);
}

TEST_F(ServerTest, ARequestHasAGreatestSize) {
  const std::string padding(kRequestBytesMax - request(1, "hello").size() + 1, ' ');
  Fd fits = connect();
  say(fits, padding + request(1, "hello"));
  EXPECT_THAT(heard(fits), HasSubstr("\"result\""));

  Fd too_long = connect();
  say(too_long, padding + " " + request(1, "hello"));
  EXPECT_THAT(heard(too_long), HasSubstr("a request has at most 65536 bytes"));

  Fd endless = connect();
  say(endless, std::string(kRequestBytesMax + 1, 'x'));
  EXPECT_THAT(heard(endless), HasSubstr("a request has at most 65536 bytes"));
  EXPECT_EQ(server_->clients(), 1u);
}

TEST_F(ServerTest, RightsFollowThePeer) {
  peer_.uid = 1000;
  Fd client = connect();
  say(client, request(1, "tenant.set", "{\"cgroup\":\"/redis.slice\"}"));
  EXPECT_THAT(heard(client), HasSubstr("\"denied\""));
  EXPECT_TRUE(module_.tenants().empty());
  say(client, request(2, "status"));
  EXPECT_THAT(heard(client), HasSubstr("\"id\":2,\"result\""));
  peer_.uid = 0;
  Fd root = connect();
  say(root, request(1, "tenant.set", "{\"cgroup\":\"/redis.slice\"}"));
  EXPECT_THAT(heard(root), HasSubstr("\"result\""));
}

TEST_F(ServerTest, WhoHasNothingMoreToSayGetsTheAnswersStill) {
  Fd client = connect();
  say(client, request(1, "request.list") + request(2, "request.list"));
  ::shutdown(client.get(), SHUT_WR);
  EXPECT_THAT(heard(client), testing::EndsWith("\"id\":2,\"result\":{\"requests\":[]}}\nEOF"));
}

TEST_F(ServerTest, AWaitHoldsUpItsOwnConnectionOnly) {
  Fd waiting = connect();
  say(waiting,
      request(1, "migrate", "{\"pid\":" + std::to_string(::getpid()) + ",\"target_node\":1}"));
  EXPECT_THAT(heard(waiting), HasSubstr("\"running\""));
  say(waiting, request(2, "request.wait", "{\"id\":1}") + request(3, "hello"));
  EXPECT_EQ(heard(waiting), "");
  Fd other = connect();
  say(other, request(1, "hello"));
  EXPECT_THAT(heard(other), HasSubstr("\"result\""));
  module_.end_request(1, MEMSLUICE_REQUEST_DONE);
  std::string answers = heard(waiting);
  EXPECT_THAT(answers, HasSubstr("\"done\""));
  EXPECT_LT(answers.find("\"id\":2"), answers.find("\"id\":3,"));
}

TEST_F(ServerTest, AClientMayLeaveWhileItWaits) {
  Fd client = connect();
  say(client,
      request(1, "migrate", "{\"pid\":" + std::to_string(::getpid()) + ",\"target_node\":1}") +
          request(2, "request.wait", "{\"id\":1}"));
  heard(client);
  client.reset();
  turn();
  EXPECT_EQ(server_->clients(), 0u);
  module_.end_request(1, MEMSLUICE_REQUEST_DONE);
  turn();
}

TEST_F(ServerTest, WhoDoesNotReadIsBoundedAndThenHungUpOn) {
  Fd client = connect();
  int room = 4096;
  ::setsockopt(client.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
  ASSERT_TRUE(tenants_->set("/redis.slice", {}).ok());
  // More answers than any socket holds, as long as somebody takes the requests.
  std::string text;
  for (int i = 0; i < 20000; i++) text += request(i, "tenant.list");
  size_t said = 0;
  for (int i = 0; i < 2000; i++) {
    ssize_t count = ::send(client.get(), text.data() + said, text.size() - said, MSG_NOSIGNAL);
    if (count > 0) said += count;
    turn();
  }
  ASSERT_LT(said, text.size()) << "the server takes requests without end";
  EXPECT_EQ(server_->clients(), 1u);
  clock_.now += Server::kSendTimeout;
  turn();
  EXPECT_EQ(server_->clients(), 0u);
  EXPECT_THAT(logged_, HasSubstr("a client of user 0 does not read its answers: hung up"));
}

TEST_F(ServerTest, WhoReadsSlowlyButDoesReadIsServed) {
  Fd client = connect();
  ASSERT_TRUE(tenants_->set("/redis.slice", {}).ok());
  std::string text;
  for (int i = 0; i < 500; i++) text += request(i, "tenant.list");
  size_t said = 0;
  std::string answers;
  char buffer[4096];
  for (int i = 0; i < 5000 && answers.find("\"id\":499,") == std::string::npos; i++) {
    if (said < text.size()) {
      ssize_t count = ::send(client.get(), text.data() + said, text.size() - said, MSG_NOSIGNAL);
      if (count > 0) said += count;
    }
    turn();
    ssize_t count = ::recv(client.get(), buffer, sizeof(buffer), 0);
    if (count > 0) answers.append(buffer, count);
    clock_.now += Milliseconds(100);
  }
  EXPECT_THAT(answers.substr(answers.size() > 4096 ? answers.size() - 4096 : 0),
              HasSubstr("\"id\":499,"));
  EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 500);
}

TEST_F(ServerTest, OneUserCannotLockTheOthersOut) {
  peer_.uid = 1000;
  std::vector<Fd> clients;
  for (size_t i = 0; i < Server::kClientsPerUserMax; i++) clients.push_back(connect());
  EXPECT_EQ(server_->clients(), Server::kClientsPerUserMax);
  EXPECT_THAT(heard(connect()), HasSubstr("too many clients of this user"));
  peer_.uid = 1001;
  Fd other = connect();
  say(other, request(1, "hello"));
  EXPECT_THAT(heard(other), HasSubstr("\"result\""));
}

TEST_F(ServerTest, ListensOnARealSocketAndKnowsItsPeers) {
  Server server(*loop_, *methods_, log_, [](const Peer& peer) { return peer.uid == ::getuid(); });
  const std::string path = host_.path("/api");
  ASSERT_TRUE(server.start(*listen_at(path, 0666)).ok());
  struct stat status;
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0666u);

  Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  say(client, request(1, "hello"));
  EXPECT_THAT(heard(client), HasSubstr("\"may_change\":true"));
}

TEST(PeerOf, HasTheUserAndAllGroups) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Fd one(ends[0]);
  Fd other(ends[1]);
  auto peer = peer_of(one.get());
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(peer->uid, ::getuid());
  std::vector<gid_t> groups(static_cast<size_t>(::getgroups(0, nullptr)));
  ASSERT_EQ(::getgroups(static_cast<int>(groups.size()), groups.data()),
            static_cast<int>(groups.size()));
  groups.push_back(::getgid());
  EXPECT_THAT(peer->groups, testing::UnorderedElementsAreArray(groups));
}

}  // namespace
}  // namespace memsluice
