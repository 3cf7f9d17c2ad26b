// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/client.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tools/memsluice/fake_daemon.h"

namespace memsluice {
namespace {

ClientOptions options(const FakeDaemon& daemon) {
  return {.socket = daemon.socket(),
          .connect_timeout = Milliseconds(300),
          .reply_timeout = Milliseconds(300),
          .reply_bytes_max = 1 << 20};
}

// Answers hello properly, and anything else with these bytes.
FakeDaemon::Handler answers_with(const std::optional<std::string>& bytes) {
  return [hello = answers({}), bytes](const Json& request) {
    return request["method"] == "hello" ? hello(request) : bytes;
  };
}

Error error_of_call(const FakeDaemon::Handler& handler) {
  const FakeDaemon daemon(handler);
  auto client = Client::connect(options(daemon));
  if (!client.ok()) return client.error();
  auto result = client->call("status");
  EXPECT_FALSE(result.ok());
  if (result.ok()) return {};
  return result.error();
}

TEST(Client, SendsParamsAndReturnsTheResult) {
  const FakeDaemon daemon(answers({{"tenant.get", {{"tenant", {{"cgroup", "/a"}}}}}}));
  auto client = Client::connect(options(daemon));
  ASSERT_TRUE(client.ok()) << client.error().describe();
  const auto result = client->call("tenant.get", {{"cgroup", "/a"}});
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ((*result)["tenant"]["cgroup"], "/a");
  EXPECT_EQ(daemon.requests().back()["params"], Json({{"cgroup", "/a"}}));
}

TEST(Client, ReturnsTheErrorOfTheDaemonAndGoesOn) {
  const FakeDaemon daemon(answers({{"status", Json::object()}}));
  auto client = Client::connect(options(daemon));
  ASSERT_TRUE(client.ok());
  const auto result = client->call("tenant.list");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnknownMethod);
  EXPECT_TRUE(client->call("status").ok());
}

TEST(Client, AcceptsAnErrorWithoutId) {
  const auto error = error_of_call([hello = answers({})](const Json& request) {
    if (request["method"] == "hello") return hello(request);
    return std::optional<std::string>(
        R"({"id": null, "error": {"code": "denied", "object": "status", "message": "no"}})"
        "\n");
  });
  EXPECT_EQ(error.code, ErrorCode::kDenied);
}

TEST(Client, SaysThatThereIsNoSocket) {
  const TemporaryDirectory directory;
  const auto client = Client::connect({.socket = directory.path("/api")});
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client.error().object, directory.path("/api"));
  EXPECT_EQ(client.error().message, "no such socket: the daemon does not run");
  EXPECT_EQ(client.error().hint, "start the daemon: systemctl start memsluiced");
}

TEST(Client, SaysThatNobodyListens) {
  const TemporaryDirectory directory;
  directory.write("/api", "");
  const auto client = Client::connect({.socket = directory.path("/api")});
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client.error().message, "nobody listens: the daemon has ended");
}

TEST(Client, SaysThatTheSocketIsNotPermitted) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const FakeDaemon daemon(answers({}));
  ASSERT_EQ(chmod(daemon.socket().c_str(), 0660), 0);
  ASSERT_EQ(seteuid(65534), 0);
  const auto client = Client::connect(options(daemon));
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::kDenied);
}

TEST(Client, RefusesPathsThatNoSocketCanHave) {
  for (const std::string& path : {std::string(), std::string(108, 'a')}) {
    const auto client = Client::connect({.socket = path});
    ASSERT_FALSE(client.ok());
    EXPECT_EQ(client.error().code, ErrorCode::kBadRequest);
    EXPECT_EQ(client.error().object, "--socket");
  }
}

TEST(Client, RefusesAnotherVersionOfTheApi) {
  const FakeDaemon daemon(answers({{"hello", {{"version", "9"}, {"api_version", 2}}}}));
  const auto client = Client::connect(options(daemon));
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client.error().message, "the daemon speaks version 2 of the API, this command 1");
}

TEST(Client, RefusesWhatIsNotMemsluiced) {
  const FakeDaemon daemon([](const Json&) { return "HTTP/1.1 400 Bad Request\r\n"; });
  const auto client = Client::connect(options(daemon));
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().message, "the reply is not JSON");
}

TEST(Client, RefusesMalformedReplies) {
  const std::string deep = std::string(100, '[') + std::string(100, ']') + "\n";
  EXPECT_EQ(error_of_call(answers_with("{\"id\": 2, \n")).message, "the reply is not JSON");
  EXPECT_EQ(error_of_call(answers_with("\n")).message, "the reply is not JSON");
  EXPECT_EQ(error_of_call(answers_with("\xff\xfe\n")).message, "the reply is not JSON");
  EXPECT_EQ(error_of_call(answers_with(deep)).message, "the reply is nested more than 16 deep");
  for (const char* reply :
       {"[]\n", "7\n", "null\n", "{\"id\": 99, \"result\": {}}\n", "{\"id\": 2}\n",
        "{\"id\": 2, \"result\": [1]}\n", "{\"id\": 2, \"error\": \"no\"}\n",
        "{\"id\": 9, \"error\": {\"code\": \"denied\"}}\n"}) {
    EXPECT_EQ(error_of_call(answers_with(reply)).message, "what came is no reply to the request")
        << reply;
  }
}

TEST(Client, ClosesTheConnectionAfterAReplyItDoesNotUnderstand) {
  const FakeDaemon daemon(answers_with("nonsense\n"));
  auto client = Client::connect(options(daemon));
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(client->call("status").error().object, daemon.socket());
  const auto again = client->call("status");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message, "the connection is closed");
}

TEST(Client, NoticesThatTheConnectionIsClosedEarly) {
  const char* message = "the daemon closed the connection without a full reply";
  EXPECT_EQ(error_of_call(answers_with(std::nullopt)).message, message);
}

TEST(Client, WaitsForASlowReply) {
  const FakeDaemon daemon([hello = answers({})](const Json& request) mutable {
    if (request["method"] == "hello") return hello(request);
    std::this_thread::sleep_for(Milliseconds(100));
    return std::optional<std::string>("{\"id\": 2, \"result\": {\"a\": 1}}\n");
  });
  auto client = Client::connect(options(daemon));
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE(client->call("status").ok());
}

TEST(Client, DoesNotWaitForEver) {
  const auto start = std::chrono::steady_clock::now();
  // An empty answer and half of one: the connection stays open in both.
  for (const char* bytes : {"", "{\"id\": 2, "}) {
    const Error error = error_of_call(answers_with(bytes));
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_EQ(error.message, "no reply within 0.3 s");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Client, DoesNotWaitForEverToBeAccepted) {
  // Its only connection is held by a caller who says nothing, and the backlog fills up.
  const FakeDaemon daemon(answers_with(""));
  std::vector<Result<Client>> waiting;
  std::string message;
  for (int i = 0; i < 10 && message != "the daemon takes no connection"; ++i) {
    waiting.push_back(Client::connect(options(daemon)));
    if (!waiting.back().ok()) message = waiting.back().error().message;
  }
  EXPECT_EQ(message, "the daemon takes no connection");
}

TEST(Client, TakesLargeRepliesUpToItsBound) {
  const auto sized = [](size_t bytes) {
    return "{\"id\": 2, \"result\": {\"a\": \"" + std::string(bytes, 'x') + "\"}}\n";
  };
  const FakeDaemon daemon(answers_with(sized(900000)));
  auto client = Client::connect(options(daemon));
  ASSERT_TRUE(client.ok());
  const auto result = client->call("status");
  ASSERT_TRUE(result.ok()) << result.error().describe();
  EXPECT_EQ((*result)["a"].get_ref<const std::string&>().size(), 900000U);

  EXPECT_EQ(error_of_call(answers_with(sized(3 << 20))).message,
            "the reply is longer than 1048576 bytes");
}

}  // namespace
}  // namespace memsluice
