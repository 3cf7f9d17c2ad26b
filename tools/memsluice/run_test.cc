// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/run.h"
#include "tools/memsluice/exit_status.h"

#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <sstream>
#include <thread>

#include "tools/memsluice/fake_daemon.h"
#include "tools/memsluice/fields.h"
#include "tools/memsluice/sample_status.h"

namespace memsluice {
namespace {

struct Outcome {
  int status;
  std::string out, err;
};

struct Settings {
  // What is typed on the terminal; nothing: there is none.
  std::optional<std::string> typed = std::nullopt;
  bool err_is_terminal = false;
  std::function<int()> stop_signal = [] { return 0; };
};

Outcome run_with(const std::string& socket, const std::string& line, Settings settings = {}) {
  std::ostringstream out;
  std::ostringstream err;
  Environment environment{.out = out, .err = err};
  environment.err_is_terminal = settings.err_is_terminal;
  environment.client = {
      .socket = socket, .connect_timeout = Milliseconds(300), .reply_timeout = Milliseconds(2000)};
  environment.stop_signal = std::move(settings.stop_signal);
  std::istringstream in(settings.typed.value_or(""));
  environment.in = &in;
  environment.in_is_terminal = settings.typed.has_value();
  std::istringstream words(line);
  const int status = run({std::istream_iterator<std::string>(words), {}}, environment);
  return {status, out.str(), err.str()};
}

Outcome run_with(const FakeDaemon& daemon, const std::string& line, Settings settings = {}) {
  return run_with(daemon.socket(), line, std::move(settings));
}

TEST(Run, PrintsTheReplyItselfAsJson) {
  const FakeDaemon daemon(answers({{"status", sample_status()}}));
  const Outcome outcome = run_with(daemon, "status --json");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(Json::parse(outcome.out), sample_status());
  EXPECT_EQ(outcome.err, "");
}

TEST(Run, SendsWhatTheArgumentsSay) {
  const FakeDaemon daemon(answers({{"tenant.set", {{"tenant", sample_status()["tenants"][1]}}}}));
  const Outcome outcome = run_with(daemon, "tenant set /x --tiering on --fast-limit 256M");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(daemon.requests().back()["method"], "tenant.set");
  EXPECT_EQ(daemon.requests().back()["params"],
            Json({{"cgroup", "/x"}, {"tiering", true}, {"fast_limit_bytes", 256 << 20}}));
}

struct Refusal {
  ErrorCode code;
  int status;
};

class Refusals : public testing::TestWithParam<Refusal> {};

TEST_P(Refusals, HaveTheirExitStatus) {
  const FakeDaemon daemon([hello = answers({})](const Json& request) {
    if (request["method"] == "hello") return hello(request);
    return std::optional(error_line(request, {.code = GetParam().code,
                                              .object = "/redis.slice",
                                              .message = "it is so",
                                              .hint = "do that"}));
  });
  const Outcome outcome = run_with(daemon, "tenant show /redis.slice");
  EXPECT_EQ(outcome.status, GetParam().status);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "memsluice: /redis.slice: it is so\n  do that\n");

  const Outcome as_json = run_with(daemon, "tenant show /redis.slice --json");
  EXPECT_EQ(as_json.status, GetParam().status);
  EXPECT_EQ(member(Json::parse(as_json.out), "error")["code"], error_code_name(GetParam().code));
}

INSTANTIATE_TEST_SUITE_P(
    Run, Refusals,
    testing::Values(Refusal{ErrorCode::kFailed, 1}, Refusal{ErrorCode::kBadRequest, 2},
                    Refusal{ErrorCode::kUnknownMethod, 2}, Refusal{ErrorCode::kDenied, 3},
                    Refusal{ErrorCode::kNotFound, 4}, Refusal{ErrorCode::kConflict, 5},
                    Refusal{ErrorCode::kUnavailable, 6}));

TEST(Run, SaysWhatToDoWithoutDaemon) {
  const Outcome outcome = run_with("/nowhere/api", "status");
  EXPECT_EQ(outcome.status, 6);
  EXPECT_EQ(outcome.err,
            "memsluice: /nowhere/api: no such socket: the daemon does not run\n"
            "  start the daemon: systemctl start memsluiced\n");
}

TEST(Run, TakesTheSocketFromTheArguments) {
  const FakeDaemon daemon(answers({{"config.reload", {{"changed", true}}}}));
  const Outcome outcome = run_with("/nowhere/api", "reload --socket " + daemon.socket());
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "the configuration has been loaded\n");
}

TEST(Run, ReportsWrongArguments) {
  const Outcome outcome = run_with("/nowhere/api", "tenant show");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "memsluice: CGROUP: is missing\n  memsluice tenant show --help\n");
  EXPECT_EQ(outcome.out, "");
  const Outcome as_json = run_with("/nowhere/api", "tenant show --json");
  EXPECT_EQ(Json::parse(as_json.out)["error"]["object"], "CGROUP");
}

TEST(Run, ReportsThatItsOutputCannotBeWritten) {
  const FakeDaemon daemon(answers({{"config.reload", {{"changed", true}}}}));
  std::ostringstream out;
  std::ostringstream err;
  out.setstate(std::ios::badbit);
  Environment environment{.out = out, .err = err};
  environment.client.socket = daemon.socket();
  EXPECT_EQ(run({"reload"}, environment), 1);
  EXPECT_EQ(err.str(), "memsluice: standard output: cannot be written\n");
}

size_t calls(const FakeDaemon& daemon, std::string_view method) {
  size_t count = 0;
  for (const Json& request : daemon.requests()) count += request["method"] == method;
  return count;
}

// Two queues, of which one has nothing to complain of.
FakeDaemon::Handler queues(const Error& error) {
  return [=, known = answers(
                 {{"engine.list", {{"engines", sample_engines()}}},
                  {"engine.reset",
                   {{"reset",
                     {{"device", "dsa0"}, {"configuration", "device"}, {"queues", {"wq0.0"}}}}}}})](
             const Json& request) -> std::optional<std::string> {
    if (request["method"] != "engine.test" && request["method"] != "engine.drain")
      return known(request);
    const Json& queue = request["params"]["queue"];
    if (queue == "wq1.0") return error_line(request, error);
    return reply_line(request, {{"queue", {{"engine", "dsa"}, {"name", queue}}}});
  };
}

const Error kBusy{.code = ErrorCode::kConflict, .message = "it is late", .hint = "reset it"};

TEST(EngineQueues, AreTestedOneAfterTheOther) {
  const FakeDaemon daemon(queues(kBusy));
  const Outcome outcome = run_with(daemon, "engine test");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_EQ(outcome.out, "dsa/wq0.0: passed\ndsa/wq1.0: failed: it is late (reset it)\n");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(daemon.requests().back()["params"], Json({{"engine", "dsa"}, {"queue", "wq1.0"}}));
}

TEST(EngineQueues, AreNamed) {
  const FakeDaemon daemon(queues(kBusy));
  const Outcome outcome = run_with(daemon, "engine drain wq1.0 wq0.0 --json");
  EXPECT_EQ(outcome.status, 5) << "the first that fails; the others have their turn";
  EXPECT_EQ(Json::parse(outcome.out), Json::parse(R"({"queues": [
              {"engine": null, "name": "wq1.0", "error": {"code": "conflict", "object": "",
               "message": "it is late", "hint": "reset it"}},
              {"engine": "dsa", "name": "wq0.0", "error": null}]})"));
  EXPECT_EQ(run_with(daemon, "engine drain wq0.0").out, "dsa/wq0.0: drained\n");
}

TEST(EngineQueues, EndWithWhatIsAboutAllOfThem) {
  const FakeDaemon daemon(
      queues({.code = ErrorCode::kUnavailable, .message = "the module is not loaded"}));
  const Outcome outcome = run_with(daemon, "engine test wq1.0 wq0.0");
  EXPECT_EQ(outcome.status, 6);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "memsluice: the module is not loaded\n");
  const FakeDaemon empty(answers({{"engine.list", {{"engines", Json::array()}}}}));
  EXPECT_EQ(run_with(empty, "engine test").status, 4);
}

TEST(EngineReset, AsksOnATerminal) {
  const FakeDaemon daemon(queues(kBusy));
  const Outcome outcome =
      run_with(daemon, "engine reset dsa0", {.typed = "y\n", .err_is_terminal = true});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.err.ends_with("Reset dsa0? [y/N] ")) << outcome.err;
  EXPECT_EQ(outcome.out, "dsa0: reset, has its configuration again; queues enabled: wq0.0\n");
}

TEST(EngineReset, IsNotDoneWithoutAYes) {
  const FakeDaemon daemon(queues(kBusy));
  for (const char* typed : {"", "\n", "n\n", "maybe\n"}) {
    const Outcome outcome =
        run_with(daemon, "engine reset dsa0", {.typed = typed, .err_is_terminal = true});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_TRUE(outcome.err.ends_with("memsluice: dsa0: is not reset: nothing has been changed\n"));
  }
  const Outcome outcome = run_with(daemon, "engine reset dsa0");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err.find("memsluice: --yes: is missing"), 0U) << outcome.err;
  EXPECT_EQ(calls(daemon, "engine.reset"), 0U);
}

TEST(EngineReset, NeedsNoTerminalWithYes) {
  const FakeDaemon daemon(queues(kBusy));
  const Outcome outcome = run_with(daemon, "engine reset dsa0 --yes --json");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(Json::parse(outcome.out)["reset"]["device"], "dsa0");
  EXPECT_EQ(outcome.err, "");
}

// A migration that is seen running so many times and then ends.
FakeDaemon::Handler migration(int running, const char* state, const Json& error = nullptr) {
  return [=, hello = answers({})](const Json& request) mutable -> std::optional<std::string> {
    if (request["method"] == "hello") return hello(request);
    Json result = sample_request();
    if (request["method"] == "request.cancel") {
      running = 1;
      state = "cancelled";
    } else if (running-- <= 0) {
      result["state"] = state;
      result["error"] = error;
    }
    if (request["method"] == "request.wait") std::this_thread::sleep_for(Milliseconds(5));
    return reply_line(request, {{"request", result}});
  };
}

TEST(Migrate, WaitsForTheEnd) {
  const FakeDaemon daemon(migration(3, "done"));
  const Outcome outcome = run_with(daemon, "migrate --pid 4711 --to 1");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(calls(daemon, "request.wait"), 3U);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            "request 7: pid 4711 to node 1: done\n"
            "  looked at     128 MiB (32768 pages) of 512 MiB (131072 pages)\n"
            "  moved         125 MiB (32000 pages)\n"
            "  already there 2.7 MiB (700 pages)\n"
            "  refused       68 pages: 8 busy, 60 pinned\n");
}

// A tenant on these channels, of which sample_census() tells.
FakeDaemon::Handler redistribution(const char* channels) {
  return [=, requests = migration(1, "done")](const Json& request) -> std::optional<std::string> {
    const std::string method = request["method"];
    const Json tenant = {{"cgroup", "/redis.slice"}, {"policy", {{"channels", channels}}}};
    if (method.starts_with("tenant.")) return reply_line(request, {{"tenant", tenant}});
    if (method == "census") return reply_line(request, {{"census", sample_census()}});
    return requests(request);
  };
}

TEST(TenantChannels, AreChangedThenPagesMoveAndWhatIsLeftIsTold) {
  const FakeDaemon daemon(redistribution("2:1,3:1"));
  const Outcome outcome =
      run_with(daemon, "tenant channels /redis.slice --add 3 --remove 0 --mib-per-s 5");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            "request 7: pid 4711 to node 1: done\n"
            "  looked at     128 MiB (32768 pages) of 512 MiB (131072 pages)\n"
            "  moved         125 MiB (32000 pages)\n"
            "  already there 2.7 MiB (700 pages)\n"
            "  refused       68 pages: 8 busy, 60 pinned\n"
            "  on node 0     522 MiB are left, 520 KiB of it held\n");
  std::vector<std::string> methods;
  for (const Json& request : daemon.requests()) methods.push_back(request["method"]);
  EXPECT_EQ(methods, (std::vector<std::string>{"hello", "tenant.set", "redistribute",
                                               "request.wait", "hello", "tenant.get", "census"}));
  EXPECT_EQ(daemon.requests()[1]["params"],
            Json({{"cgroup", "/redis.slice"}, {"channels", "+3,-0"}}));
}

TEST(TenantChannels, NothingIsLeftOnNodesThatAreChannels) {
  const FakeDaemon daemon(redistribution("0:1"));
  const Outcome outcome = run_with(daemon, "tenant channels /redis.slice --json");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(Json::parse(outcome.out)["elsewhere"], Json::array());
  EXPECT_EQ(calls(daemon, "tenant.set"), 0U);
}

TEST(TenantChannels, AreNotMovedToWhenTheyCannotBeSet) {
  const Error error{.code = ErrorCode::kBadRequest, .object = "channels", .message = "no"};
  const FakeDaemon daemon([=, known = redistribution("0:1")](const Json& request) {
    return request["method"] == "tenant.set" ? std::optional(error_line(request, error))
                                             : known(request);
  });
  const Outcome outcome = run_with(daemon, "tenant channels /redis.slice --add 9");
  EXPECT_EQ(outcome.status, exit_status(ErrorCode::kBadRequest));
  EXPECT_EQ(calls(daemon, "redistribute"), 0U);
}

TEST(Migrate, DoesNotWaitWhenDetached) {
  const FakeDaemon daemon(migration(3, "done"));
  const Outcome outcome = run_with(daemon, "migrate --pid 4711 --to 1 --detach --json");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(calls(daemon, "request.wait"), 0U);
  EXPECT_EQ(Json::parse(outcome.out), Json({{"request", sample_request()}}));
}

TEST(Migrate, ShowsProgressOnATerminalWhenItTakesLong) {
  const FakeDaemon daemon(migration(300, "done"));
  const Outcome outcome = run_with(daemon, "migrate --pid 4711 --to 1", {.err_is_terminal = true});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err.find("\r\033[K[#######-----"), 0U) << outcome.err;
  EXPECT_TRUE(outcome.err.ends_with("\r\033[K")) << "the bar is wiped off in the end";
}

TEST(Migrate, ShowsNoProgressInAFile) {
  const FakeDaemon daemon(migration(300, "done"));
  EXPECT_EQ(run_with(daemon, "migrate --pid 4711 --to 1").err, "");
}

TEST(Migrate, EndsAsTheRequestDoes) {
  const FakeDaemon daemon(
      migration(1, "failed",
                {{"code", "not_found"}, {"object", "pid 4711"}, {"message", "no such process"}}));
  const Outcome outcome = run_with(daemon, "migrate --pid 4711 --to 1 --json");
  EXPECT_EQ(outcome.status, 4);
  EXPECT_EQ(Json::parse(outcome.out)["request"]["state"], "failed");
  EXPECT_EQ(outcome.err, "memsluice: pid 4711: no such process\n");
}

TEST(Migrate, SaysThatAnotherHasCancelledIt) {
  const FakeDaemon daemon(migration(1, "cancelled"));
  const Outcome outcome = run_with(daemon, "migrate --pid 4711 --to 1");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "memsluice: request 7: has ended as cancelled\n");
}

TEST(Migrate, IsCancelledByASignalAndSaysWhatWasMoved) {
  const FakeDaemon daemon(migration(1000000, "done"));
  const Outcome outcome =
      run_with(daemon, "migrate --pid 4711 --to 1",
               {.stop_signal = [asked = 0]() mutable { return ++asked > 3 ? SIGINT : 0; }});
  EXPECT_EQ(outcome.status, 128 + SIGINT);
  EXPECT_EQ(calls(daemon, "request.cancel"), 1U);
  EXPECT_NE(outcome.out.find("request 7: pid 4711 to node 1: cancelled"), std::string::npos);
  EXPECT_NE(outcome.out.find("moved         125 MiB"), std::string::npos);
}

TEST(Migrate, SurvivesAReplyWithoutRequest) {
  const FakeDaemon daemon(answers({{"migrate", {{"request", 7}}}}));
  const Outcome outcome = run_with(daemon, "migrate --pid 4711 --to 1");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err,
            "memsluice: migrate: the reply has no request in it\n"
            "  memsluice request list shows what runs\n");
}

TEST(Top, OncePrintsOnePictureOfTwoSamples) {
  const FakeDaemon daemon([results = answers({{"status", sample_status()}}),
                           first = true](const Json& request) mutable {
    if (request["method"] != "status" || !std::exchange(first, false)) return results(request);
    return std::optional(reply_line(request, earlier_sample_status()));
  });
  const Outcome outcome = run_with(daemon, "top --once --interval 0.1 --json");
  EXPECT_EQ(outcome.status, 0);
  const Json sample = Json::parse(outcome.out);
  EXPECT_GT(sample["tenants"][1]["promoted_pages_per_s"], 0);
  EXPECT_GE(sample["interval_s"], 0.1);
  EXPECT_NE(run_with(daemon, "top --once --interval 0.1").out.find("TENANT"), std::string::npos);
}

TEST(Doctor, JudgesTheTreeItIsGivenAndAsksTheDaemon) {
  const TemporaryDirectory host;
  host.write("/proc/sys/kernel/osrelease", "6.1.0\n");
  const FakeDaemon daemon(answers({}));
  const Outcome outcome = run_with(daemon, "doctor --json --root " + host.path());
  EXPECT_EQ(outcome.status, 1);
  bool old_kernel = false;
  const Json result = Json::parse(outcome.out);
  for (const Json& finding : result["findings"]) {
    old_kernel |= finding["id"] == "kernel" && finding["level"] == "error";
    EXPECT_EQ(finding.size(), 5U);
  }
  EXPECT_TRUE(old_kernel);
}

TEST(Doctor, SaysWhichDaemonAnswers) {
  const FakeDaemon daemon(answers({}));
  const Outcome outcome = run_with(daemon, "doctor");
  EXPECT_NE(
      outcome.out.find("daemon            " + daemon.socket() + ": memsluiced " MEMSLUICE_VERSION),
      std::string::npos)
      << outcome.out;
}

TEST(Version, WorksWithAndWithoutDaemon) {
  const FakeDaemon daemon(answers({}));
  const Json with = Json::parse(run_with(daemon, "version --json").out);
  EXPECT_EQ(with["version"], MEMSLUICE_VERSION);
  EXPECT_EQ(with["daemon"]["version"], MEMSLUICE_VERSION);
  const Outcome without = run_with("/nowhere/api", "version");
  EXPECT_EQ(without.status, 0);
  EXPECT_NE(without.out.find("no such socket"), std::string::npos);
}

TEST(Run, AChannelIsRemovedAndWatched) {
  // The one that waits, and the one that looks.
  const FakeDaemon daemon([](const Json& request) -> std::optional<std::string> {
    if (request["method"] == "channel.remove") {
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      return reply_line(request,
                        {{"removed", {{"name", "ch2"}, {"node", 2}, {"moved_pages", 2560}}}});
    }
    if (request["method"] == "channel.list")
      return reply_line(request, {{"channels", sample_channels()}});
    return answers({})(request);
  });
  EXPECT_EQ(run_with(daemon, "channel remove ch2").out,
            "channel ch2: gone, 10 MiB moved off node 2\n");
  EXPECT_EQ(Json::parse(run_with(daemon, "channel remove ch2 --json").out)["removed"]["node"], 2);
}

}  // namespace
}  // namespace memsluice
