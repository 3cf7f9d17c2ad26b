// SPDX-License-Identifier: GPL-2.0
#include "tests/vm/traffic/plugin_arguments.h"

#include <gtest/gtest.h>

#include <vector>

namespace memsluice::traffic {
namespace {

Result<PluginArguments> parse(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return parse_arguments(static_cast<int>(argv.size()), argv.data());
}

TEST(PluginArguments, TakesSizesWithUnits) {
  const auto arguments = parse({"counters=/tmp/a=b", "cache-bytes=4M", "cache-ways=8",
                                "line-bytes=128", "block-bytes=2M", "blocks=1024", "channels=3"});
  ASSERT_TRUE(arguments.ok()) << arguments.error().describe();
  EXPECT_EQ(arguments->counters, "/tmp/a=b");
  EXPECT_EQ(arguments->cache.bytes, 4u << 20);
  EXPECT_EQ(arguments->cache.ways, 8u);
  EXPECT_EQ(arguments->cache.line_bytes, 128u);
  EXPECT_EQ(arguments->block_bytes, 2u << 20);
  EXPECT_EQ(arguments->blocks, 1024u);
  EXPECT_EQ(arguments->channels, 3u);
}

TEST(PluginArguments, NamesWhatIsWrong) {
  const auto message = [](std::vector<std::string> arguments) {
    arguments.push_back("counters=x");
    const auto parsed = parse(std::move(arguments));
    return parsed.ok() ? std::string() : parsed.error().describe();
  };
  EXPECT_EQ(message({}), "");
  EXPECT_NE(message({"cache=4M"}).find("cache: unknown argument"), std::string::npos);
  EXPECT_NE(message({"cache-bytes"}).find("cache-bytes"), std::string::npos);
  EXPECT_NE(message({"cache-bytes=much"}).find("much"), std::string::npos);
  EXPECT_NE(message({"cache-bytes=3M"}).find("powers of two"), std::string::npos);
  EXPECT_NE(message({"block-bytes=3M"}).find("block-bytes"), std::string::npos);
  EXPECT_NE(message({"block-bytes=64"}).find("block-bytes"), std::string::npos);
  EXPECT_FALSE(parse({}).ok()) << "no file to count in";
}

}  // namespace
}  // namespace memsluice::traffic
