// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/control.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "daemon/base/temporary_directory.h"
#include "daemon/base/unix_socket.h"
#include "tools/memsluice-dsa/bus_server.h"

namespace memsluice::dsa {
namespace {

class ControlTest : public testing::Test {
 protected:
  Json ask(std::string_view line) { return Json::parse(control_.answer(line)); }
  Json result(const std::string& method, const Json& parameters = Json::object()) {
    const Json reply = ask(Json{{"method", method}, {"params", parameters}}.dump());
    return reply.contains("result") ? reply["result"] : Json{{"wrong", reply["error"]}};
  }
  std::string code(std::string_view line) { return ask(line)["error"].value("code", ""); }
  void run(const std::function<bool()>& until) {
    while (!until()) ASSERT_TRUE(loop_->run_once(Milliseconds(100)).ok());
  }

  const Shape shape_ = {};
  const Log log_{LogLevel::kError, [](std::string_view) {}};
  SystemClock clock_;
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  GuestMemory memory_;
  Device device_{shape_, memory_, log_};
  VfioUser protocol_{shape_, device_, memory_, log_};
  BusServer bus_{*loop_, protocol_, log_};
  Control control_{device_, bus_};
  TemporaryDirectory directory_;
};

TEST_F(ControlTest, TellsStatusAndStatistics) {
  const Json status = result("status");
  EXPECT_EQ(status["state"], "disabled");
  EXPECT_EQ(status["queues"].size(), 8U);
  EXPECT_EQ(status["engines"].size(), 4U);
  EXPECT_EQ(status["plugged_in"], false);
  EXPECT_EQ(result("statistics")["bytes"], 0);
}

TEST_F(ControlTest, KeepsRulesUntilTheyAreForgotten) {
  EXPECT_EQ(result("inject", {{"do", "delay"}, {"delay_us", 5}})["id"], 1);
  EXPECT_EQ(result("inject", {{"do", "hold"}})["id"], 2);
  EXPECT_EQ(result("injections").size(), 2U);
  EXPECT_EQ(result("forget", {{"id", 1}}), Json::object());
  EXPECT_EQ(result("injections")[0]["do"], "hold");
  EXPECT_EQ(result("forget", {{"id", 1}})["wrong"]["code"], "not_found");
  result("forget");
  EXPECT_EQ(result("injections").size(), 0U);
  EXPECT_EQ(result("inject", {{"do", "nothing"}})["wrong"]["object"], "do");
}

TEST_F(ControlTest, HoldsAndReleasesEngines) {
  result("hold", {{"engine", 2}});
  EXPECT_EQ(result("status")["engines"][2]["held"], true);
  result("release", {{"engine", 2}});
  EXPECT_EQ(result("status")["engines"][2]["held"], false);
  EXPECT_EQ(result("hold", {{"engine", 4}})["wrong"]["code"], "not_found");
  EXPECT_EQ(result("hold")["wrong"]["code"], "bad_request");
}

TEST_F(ControlTest, HaltsTheDevice) {
  result("halt", {{"reset", "flr"}});
  EXPECT_EQ(result("status")["state"], "halted");
  EXPECT_EQ(result("halt", {{"reset", "often"}})["wrong"]["object"], "reset");
}

TEST_F(ControlTest, TracesWhenAsked) {
  EXPECT_EQ(result("read-trace"), Json::array());
  EXPECT_EQ(result("trace", {{"entries", 10}}), Json::object());
  EXPECT_EQ(result("trace", {{"entries", 1000001}})["wrong"]["code"], "bad_request");
}

TEST_F(ControlTest, SaysWhatIsWrongWithARequest) {
  EXPECT_EQ(code("x"), "bad_request");
  EXPECT_EQ(code("[]"), "bad_request");
  EXPECT_EQ(code("{}"), "bad_request");
  EXPECT_EQ(code(R"({"method": 1})"), "bad_request");
  EXPECT_EQ(code(R"({"method": "status", "params": []})"), "bad_request");
  EXPECT_EQ(code(R"({"method": "stop"})"), "unknown_method");
  EXPECT_EQ(code(std::string(50, '[')), "bad_request");
}

TEST_F(ControlTest, AnswersEachLineOfASocket) {
  ControlServer server(*loop_, control_, log_);
  ASSERT_TRUE(server.start(*listen_at(directory_.path("/control"), 0600)).ok());
  const Fd client = *connect_to(directory_.path("/control"));
  const std::string requests = "{\"method\":\"status\"}\nx\n";
  ASSERT_EQ(::send(client.get(), requests.data(), requests.size(), 0),
            static_cast<ssize_t>(requests.size()));
  std::string replies;
  char buffer[4096];
  run([&] {
    const ssize_t got = ::recv(client.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got > 0) replies.append(buffer, static_cast<size_t>(got));
    return std::count(replies.begin(), replies.end(), '\n') == 2;
  });
  EXPECT_NE(replies.find("\"state\":\"disabled\""), std::string::npos);
  EXPECT_NE(replies.find("not JSON"), std::string::npos);
}

TEST_F(ControlTest, HangsUpOnALineThatNeverEnds) {
  ControlServer server(*loop_, control_, log_);
  ASSERT_TRUE(server.start(*listen_at(directory_.path("/control"), 0600)).ok());
  const Fd client = *connect_to(directory_.path("/control"));
  const std::string much(1 << 12, 'x');
  run([&] {
    return ::send(client.get(), much.data(), much.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
           errno == EPIPE;
  });
}

class BusTest : public ControlTest {
 protected:
  BusTest() {
    EXPECT_TRUE(bus_.start(*listen_at(directory_.path("/bus"), 0600)).ok());
    client_ = *connect_to(directory_.path("/bus"));
    run([&] { return bus_.has_client(); });
  }
  void send(const void* data, size_t bytes) {
    ASSERT_EQ(::send(client_.get(), data, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
  }
  VfioUserHeader receive() {
    VfioUserHeader header;
    size_t got = 0;
    run([&] {
      const ssize_t now = ::recv(client_.get(), reinterpret_cast<char*>(&header) + got,
                                 sizeof(header) - got, MSG_DONTWAIT);
      if (now > 0) got += static_cast<size_t>(now);
      return got == sizeof(header);
    });
    return header;
  }

  Fd client_;
};

TEST_F(BusTest, AnswersAMessageThatComesInPieces) {
  const VfioUserHeader reset{.id = 7, .command = 13, .size = sizeof(reset)};
  const auto* bytes = reinterpret_cast<const char*>(&reset);
  send(bytes, 5);
  ASSERT_TRUE(loop_->run_once(Milliseconds(20)).ok());
  send(bytes + 5, sizeof(reset) - 5);
  EXPECT_EQ(receive().id, 7U);
}

TEST_F(BusTest, HasOneClientAtATime) {
  const Fd second = *connect_to(directory_.path("/bus"));
  char byte;
  run([&] { return ::recv(second.get(), &byte, 1, MSG_DONTWAIT) == 0; });
  client_.reset();
  run([&] { return !bus_.has_client(); });
  client_ = *connect_to(directory_.path("/bus"));
  run([&] { return bus_.has_client(); });
}

TEST_F(BusTest, HangsUpOnSizesThatCannotBe) {
  for (const uint32_t size : {0U, 15U, 0xffffffffU}) {
    const VfioUserHeader header{.id = 1, .command = 13, .size = size};
    send(&header, sizeof(header));
    run([&] { return !bus_.has_client(); });
    client_ = *connect_to(directory_.path("/bus"));
    run([&] { return bus_.has_client(); });
  }
}

TEST_F(BusTest, CanBePulledOut) {
  EXPECT_EQ(result("status")["plugged_in"], true);
  result("pull-out");
  EXPECT_EQ(result("status")["plugged_in"], false);
  char byte;
  EXPECT_EQ(::recv(client_.get(), &byte, 1, 0), 0);
}

}  // namespace
}  // namespace memsluice::dsa
