// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <sstream>

#include "tools/memsluice/arguments.h"
#include "tools/memsluice/fake_daemon.h"
#include "tools/memsluice/format.h"
#include "tools/memsluice/render.h"
#include "tools/memsluice/run.h"
#include "tools/memsluice/sample_status.h"
#include "tools/memsluice/top_frame.h"
#include "tools/memsluice/top_sample.h"

namespace memsluice {
namespace {

using Random = std::mt19937_64;

template <typename List>
const auto& pick(const List& list, Random& random) {
  return list[random() % list.size()];
}

std::string noise(Random& random) {
  std::string text(random() % 12, '\0');
  for (char& byte : text) byte = static_cast<char>(random());
  return text;
}

std::string random_word(Random& random) {
  static const std::vector<std::string> command_words = {"status",
                                                         "tenant",
                                                         "list",
                                                         "show",
                                                         "set",
                                                         "clear",
                                                         "migrate",
                                                         "request",
                                                         "engine",
                                                         "census",
                                                         "metrics",
                                                         "--node",
                                                         "--tenants",
                                                         "test",
                                                         "drain",
                                                         "reset",
                                                         "dsa/wq0.0",
                                                         "--yes",
                                                         "cancel",
                                                         "reload",
                                                         "top",
                                                         "doctor",
                                                         "version",
                                                         "--json",
                                                         "--socket",
                                                         "--pid",
                                                         "--to",
                                                         "--from",
                                                         "--tenant",
                                                         "--address",
                                                         "--length",
                                                         "--detach",
                                                         "--tiering",
                                                         "--fast-limit",
                                                         "--interval",
                                                         "--once",
                                                         "--all-mappings",
                                                         "--promote-mib-per-s",
                                                         "--help",
                                                         "--",
                                                         "-",
                                                         "",
                                                         "/x",
                                                         "0",
                                                         "1",
                                                         "-1",
                                                         "512M",
                                                         "18446744073709551616",
                                                         "0x",
                                                         "on",
                                                         "none",
                                                         "1e999"};
  return random() % 8 == 0 ? noise(random) : pick(command_words, random);
}

TEST(Fuzz, EveryArgumentListIsUnderstoodOrRefusedWithAMessage) {
  Random random(20261129);
  size_t understood = 0;
  for (int round = 0; round < 1500; ++round) {
    std::vector<std::string> arguments(random() % 7);
    for (std::string& argument : arguments) argument = random_word(random);
    const auto invocation = parse_arguments(arguments);
    if (invocation.ok()) {
      ++understood;
      continue;
    }
    ASSERT_EQ(invocation.error().code, ErrorCode::kBadRequest);
    ASSERT_FALSE(invocation.error().object.empty() && invocation.error().message.empty());
  }
  EXPECT_GT(understood, 50U);
}

Json random_scalar(Random& random) {
  switch (random() % 8) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return random();
    case 3:
      return -static_cast<int64_t>(random() % 1000);
    case 4:
      return 1e300 * static_cast<double>(random() % 3);
    case 5:
      return Json::array({1, "x", nullptr});
    case 6:
      return Json::object({{"0", 7}});
    default:
      return std::string(random() % 200, 'w') + "\033[2J";
  }
}

// Puts something unexpected in place of a few members, or leaves them out.
void mutate(Json& value, Random& random) {
  if (value.is_structured() && !value.empty() && random() % 8 != 0) {
    for (Json& part : value) {
      if (random() % 3 == 0) mutate(part, random);
    }
  } else if (random() % 4 == 0) {
    value = random_scalar(random);
  }
}

TEST(Fuzz, EveryPictureOfTopFitsTheTerminal) {
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    Json now = sample_status();
    Json before = earlier_sample_status();
    mutate(now, random);
    mutate(before, random);
    const size_t columns = 1 + random() % 150;
    const size_t rows = 1 + random() % 40;
    const auto lines = top_frame(top_sample(now, before, 1.0), {.columns = columns, .rows = rows});
    ASSERT_LE(lines.size(), rows);
    for (const std::string& line : lines) {
      ASSERT_LE(display_width(line), columns);
      ASSERT_EQ(line.find('\033'), line.npos) << "names must not drive the terminal";
    }
  }
}

TEST(Fuzz, EveryReplyCanBeRendered) {
  static constexpr std::array kMethods = {
      "status",       "tenant.list",  "tenant.get",    "tenant.set",     "tenant.clear",
      "request.list", "request.get",  "config.reload", "engine.list",    "engine.reset",
      "census",       "channel.list", "channel.add",   "channel.remove", "metrics"};
  Random random(2);
  for (int round = 0; round < 1000; ++round) {
    Json result = sample_status();
    result["tenant"] = result["tenants"][1];
    result["request"] = sample_request();
    result["requests"] = {sample_request(), sample_request()};
    result["engines"] = sample_engines();
    result["census"] = sample_census();
    result["channels"] = sample_channels();
    result["channel"] = result["removed"] = sample_channels()[1];
    result["reset"] = {{"device", "dsa0"}, {"configuration", "device"}, {"queues", {"wq0.0"}}};
    mutate(result, random);
    const std::string text = render_result(pick(kMethods, random), {}, result, 4096);
    ASSERT_EQ(text.find('\033'), text.npos);
    ASSERT_LE(display_width(progress_line(result, 1.0, 60, 4096)), 60U);
  }
}

TEST(Fuzz, EveryReplyOnTheSocketEndsTheCommand) {
  auto random = std::make_shared<Random>(3);
  const FakeDaemon daemon([random, proper = answers({{"status", sample_status()}})](
                              const Json& request) -> std::optional<std::string> {
    std::string line = *proper(request);
    if (request["method"] == "hello" && (*random)() % 8 != 0) return line;
    for (uint64_t changes = (*random)() % 4; changes > 0; --changes) {
      line[(*random)() % line.size()] = static_cast<char>((*random)());
    }
    if ((*random)() % 8 == 0) line.resize((*random)() % line.size());
    if ((*random)() % 16 == 0) return std::nullopt;
    return line;
  });
  for (int round = 0; round < 300; ++round) {
    std::ostringstream out;
    std::ostringstream err;
    Environment environment{.out = out, .err = err};
    environment.client.socket = daemon.socket();
    environment.client.reply_timeout = Milliseconds(20);
    const int status = run({"status"}, environment);
    ASSERT_TRUE(status >= 0 && status <= 6) << status;
    ASSERT_EQ(err.str().empty(), status == 0);
  }
}

}  // namespace
}  // namespace memsluice
