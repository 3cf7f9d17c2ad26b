// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice-dsa/arguments.h"

#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

namespace memsluice::dsa {
namespace {

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

template <typename T>
T parsed(const std::string& line) {
  const Arguments arguments = parse_arguments(words(line));
  const auto* options = std::get_if<T>(&arguments);
  if (const auto* printed = std::get_if<Printed>(&arguments); printed && !options)
    ADD_FAILURE() << line << ": " << printed->text;
  else if (!options)
    ADD_FAILURE() << line << ": is taken for another command";
  return options ? *options : T();
}

TEST(Arguments, ServeADeviceLikeTheHardware) {
  const auto serve = parsed<ServeOptions>("serve /run/dsa0");
  EXPECT_EQ(serve.socket, "/run/dsa0");
  EXPECT_EQ(serve.control, "");
  EXPECT_FALSE(serve.verbose);
  EXPECT_EQ(serve.shape.engines, 4u);
  EXPECT_EQ(serve.shape.groups, 4u);
  EXPECT_EQ(serve.shape.queues, 8u);
  EXPECT_EQ(serve.shape.queue_entries, 128u);
  EXPECT_EQ(serve.shape.max_batch_shift, 10u);
  EXPECT_EQ(serve.shape.max_transfer_shift, 31u);
}

TEST(Arguments, ShapeTheDevice) {
  const auto serve = parsed<ServeOptions>(
      "serve /a --control /b --engines 1 --groups 2 --queues 3 --queue-entries 5 --max-batch 64 "
      "--max-transfer-bytes 65536 --verbose");
  EXPECT_EQ(serve.socket, "/a");
  EXPECT_EQ(serve.control, "/b");
  EXPECT_TRUE(serve.verbose);
  EXPECT_EQ(serve.shape.engines, 1u);
  EXPECT_EQ(serve.shape.groups, 2u);
  EXPECT_EQ(serve.shape.queues, 3u);
  EXPECT_EQ(serve.shape.queue_entries, 5u);
  EXPECT_EQ(serve.shape.max_batch_shift, 6u);
  EXPECT_EQ(serve.shape.max_transfer_shift, 16u);
}

TEST(Arguments, ModelTheTimeOfTraces) {
  const auto known = parsed<TimeOptions>("time a");
  EXPECT_EQ(known.traces, std::vector<std::string>{"a"});
  EXPECT_EQ(known.constants.device_bytes_per_ns, 32);
  EXPECT_EQ(known.constants.engines, 4u);
  const auto other = parsed<TimeOptions>(
      "time a b --device-gb-per-s 1.5 --all-gb-per-s 2 --descriptor-ns 3 --latency-ns 0 "
      "--submit-ns 5 --engines 6");
  EXPECT_EQ(other.traces, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(other.constants.device_bytes_per_ns, 1.5);
  EXPECT_EQ(other.constants.all_bytes_per_ns, 2);
  EXPECT_EQ(other.constants.descriptor_ns, 3);
  EXPECT_EQ(other.constants.latency_ns, 0);
  EXPECT_EQ(other.constants.submit_ns, 5);
  EXPECT_EQ(other.constants.engines, 6u);
}

TEST(Arguments, StandBeforeAndAfterTheSocket) {
  const auto serve = parsed<ServeOptions>("serve -v --engines=2 /a --groups=3");
  EXPECT_EQ(serve.socket, "/a");
  EXPECT_TRUE(serve.verbose);
  EXPECT_EQ(serve.shape.engines, 2u);
  EXPECT_EQ(serve.shape.groups, 3u);
}

TEST(Arguments, ReachTheSmallestDevice) {
  const auto serve = parsed<ServeOptions>(
      "serve /a --engines 1 --groups 1 --queues 1 --queue-entries 1 --max-batch 2 "
      "--max-transfer-bytes 4096");
  EXPECT_EQ(serve.shape.engines, 1u);
  EXPECT_EQ(serve.shape.groups, 1u);
  EXPECT_EQ(serve.shape.queues, 1u);
  EXPECT_EQ(serve.shape.queue_entries, 1u);
  EXPECT_EQ(serve.shape.max_batch_shift, 1u);
  EXPECT_EQ(serve.shape.max_transfer_shift, 12u);
}

TEST(Arguments, ReachTheLargestDevice) {
  const auto serve = parsed<ServeOptions>(
      "serve /a --engines 16 --groups 16 --queues 64 --queue-entries 65535 --max-batch 32768 "
      "--max-transfer-bytes 2147483648");
  EXPECT_EQ(serve.shape.engines, 16u);
  EXPECT_EQ(serve.shape.groups, 16u);
  EXPECT_EQ(serve.shape.queues, 64u);
  EXPECT_EQ(serve.shape.queue_entries, 65535u);
  EXPECT_EQ(serve.shape.max_batch_shift, 15u);
  EXPECT_EQ(serve.shape.max_transfer_shift, 31u);
}

TEST(Arguments, AskWithoutParameters) {
  const auto ask = parsed<AskOptions>("ask /run/dsa0-control statistics");
  EXPECT_EQ(ask.control, "/run/dsa0-control");
  EXPECT_EQ(ask.method, "statistics");
  EXPECT_EQ(ask.parameters, "{}");
}

TEST(Arguments, AskWithParameters) {
  const Arguments arguments =
      parse_arguments({"ask", "/c", "inject", R"({"do": "status", "status": 33, "skip": 10})"});
  const auto* ask = std::get_if<AskOptions>(&arguments);
  ASSERT_NE(ask, nullptr);
  EXPECT_EQ(ask->method, "inject");
  EXPECT_EQ(ask->parameters, R"({"do": "status", "status": 33, "skip": 10})");
}

struct Mistake {
  const char* line;
  const char* says;
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreSaidAndExitWithTwo) {
  const Arguments arguments = parse_arguments(words(GetParam().line));
  const auto* printed = std::get_if<Printed>(&arguments);
  ASSERT_NE(printed, nullptr);
  EXPECT_EQ(printed->status, 2);
  EXPECT_NE(printed->text.find(GetParam().says), std::string::npos) << printed->text;
}

INSTANTIATE_TEST_SUITE_P(
    Arguments, Mistakes,
    testing::Values(
        Mistake{"", "subcommand is required"}, Mistake{"--verbose", "subcommand is required"},
        Mistake{"sreve /a", "subcommand is required"}, Mistake{"serve", "socket is required"},
        Mistake{"serve /a /b", "/b"}, Mistake{"serve /a --qeues 1", "--qeues"},
        Mistake{"serve /a --engines", "--engines"}, Mistake{"serve /a --engines 0", "--engines"},
        Mistake{"serve /a --engines 17", "--engines"},
        Mistake{"serve /a --engines four", "--engines"},
        Mistake{"serve /a --engines -1", "--engines"}, Mistake{"serve /a --groups 0", "--groups"},
        Mistake{"serve /a --groups 17", "--groups"}, Mistake{"serve /a --queues 0", "--queues"},
        Mistake{"serve /a --queues 65", "--queues"},
        Mistake{"serve /a --queue-entries 0", "--queue-entries"},
        Mistake{"serve /a --queue-entries 65536", "--queue-entries"},
        Mistake{"serve /a --max-batch 1", "--max-batch"},
        Mistake{"serve /a --max-batch 65536", "--max-batch"},
        Mistake{"serve /a --max-batch 1000", "1000 is no power of two"},
        Mistake{"serve /a --max-transfer-bytes 2048", "--max-transfer-bytes"},
        Mistake{"serve /a --max-transfer-bytes 4294967296", "--max-transfer-bytes"},
        Mistake{"serve /a --max-transfer-bytes 4097", "4097 is no power of two"},
        Mistake{"serve /a --queues 8 --queue-entries 7",
                "--queues: there are fewer --queue-entries than that"},
        Mistake{"serve /a ask /b status", "ask"}, Mistake{"ask", "control is required"},
        Mistake{"ask /b", "method is required"}, Mistake{"ask /b status {} more", "more"},
        Mistake{"ask /b status --engines 1", "--engines"}, Mistake{"time", "traces is required"},
        Mistake{"time a --all-gb-per-s 0", "--all-gb-per-s"},
        Mistake{"time a --latency-ns -1", "--latency-ns"},
        Mistake{"time a --engines 17", "--engines"}));

TEST(Arguments, HelpIsPrinted) {
  for (const char* line : {"--help", "-h"}) {
    const auto printed = parsed<Printed>(line);
    EXPECT_EQ(printed.status, 0);
    EXPECT_NE(printed.text.find("serve"), std::string::npos) << printed.text;
    EXPECT_NE(printed.text.find("ask"), std::string::npos) << printed.text;
    EXPECT_NE(printed.text.find("memory-backend-memfd,share=on"), std::string::npos)
        << printed.text;
  }
}

TEST(Arguments, HelpOfACommandTellsItsOptionsAndDefaults) {
  const auto serve = parsed<Printed>("serve --help");
  EXPECT_EQ(serve.status, 0);
  for (const char* option : {"--control", "--engines", "--groups", "--queues", "--queue-entries",
                             "--max-batch", "--max-transfer-bytes", "--verbose", "2147483648"})
    EXPECT_NE(serve.text.find(option), std::string::npos) << option << "\n" << serve.text;
  const auto ask = parsed<Printed>("ask --help");
  EXPECT_EQ(ask.status, 0);
  EXPECT_NE(ask.text.find("read-trace"), std::string::npos) << ask.text;
}

TEST(Arguments, VersionIsPrinted) {
  const auto printed = parsed<Printed>("--version");
  EXPECT_EQ(printed.status, 0);
  EXPECT_EQ(printed.text.find("memsluice-dsa "), 0u) << printed.text;
  EXPECT_TRUE(printed.text.ends_with("\n")) << printed.text;
}

}  // namespace
}  // namespace memsluice::dsa
