// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/channels_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memsluice {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

constexpr const char* kGood = R"(
[[group]]
name = "dram"

[[channel]]
name = "dram-0"
group = "dram"
start = 0x140000000
length = "2G"
node = 2
read_mib_per_s = 20000
read_latency_ns = 100

[[channel]]
name = "dram-1"
group = "dram"
node = 1
)";

std::string problems_of(const std::string& text) {
  std::string all;
  for (const ConfigProblem& problem : parse_channels_file(text, "channels.toml").problems)
    all += problem.describe() + '\n';
  return all;
}

std::string with(const std::string& old, const std::string& replacement) {
  std::string text = kGood;
  const size_t at = text.find(old);
  EXPECT_NE(at, text.npos) << old;
  return text.replace(at, old.size(), replacement);
}

TEST(ChannelsFile, SaysWhatChannelsAre) {
  const LoadedChannels loaded = parse_channels_file(kGood, "channels.toml");
  ASSERT_TRUE(loaded.problems.empty()) << problems_of(kGood);
  EXPECT_EQ(loaded.file.groups, std::vector<std::string>{"dram"});
  ASSERT_EQ(loaded.file.channels.size(), 2U);
  const ChannelDefinition& added = loaded.file.channels[0];
  EXPECT_EQ(added.name, "dram-0");
  EXPECT_EQ(added.range, (PhysicalRange{0x140000000, 2 * kGib}));
  EXPECT_EQ(added.node, 2);
  EXPECT_EQ(added.speeds, (ChannelSpeeds{20000, {}, 100, {}}));
  EXPECT_EQ(added.position.line, 5U);
  EXPECT_EQ(loaded.file.channels[1].range, std::nullopt);
}

TEST(ChannelsFile, WhatIsWrittenIsWhatIsRead) {
  const ChannelsFile file = parse_channels_file(kGood, "").file;
  const std::string text = format_channels_file(
      file,
      "A heading that is long enough to be broken into more than one line, because nobody "
      "likes to read lines that are longer than a hundred columns.");
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != text.npos; at = end + 1)
    EXPECT_LE(end - at, 100U);
  const LoadedChannels again = parse_channels_file(text, "");
  EXPECT_TRUE(again.problems.empty()) << problems_of(text);
  EXPECT_EQ(format_channels_file(again.file, ""), format_channels_file(file, ""));
}

TEST(ChannelsFile, RefusesWithWords) {
  using testing::HasSubstr;
  EXPECT_THAT(problems_of(with("group = \"dram\"", "group = \"drum\"")),
              HasSubstr("channels.toml:7: channel.group: no group is named \"drum\" (dram)"));
  EXPECT_THAT(problems_of(with("0x140000000", "0x140000001")),
              HasSubstr("channel.start: must be a multiple of 128 MiB"));
  EXPECT_THAT(problems_of(with("\"2G\"", "\"64M\"")),
              HasSubstr("channel.length: must be a multiple of 128 MiB"));
  EXPECT_THAT(problems_of(with("\"2G\"", "\"0\"")), HasSubstr("must be greater than 0"));
  EXPECT_THAT(problems_of(with("0x140000000", "0xffffff8000000")),
              HasSubstr("beyond 52 bits of address"));
  EXPECT_THAT(problems_of(with("length = \"2G\"\n", "")), HasSubstr("channel: has no length"));
  EXPECT_THAT(problems_of(with("start = 0x140000000\n", "")), HasSubstr("channel: has no start"));
  EXPECT_THAT(problems_of(with("node = 1\n", "")),
              HasSubstr("channel: has neither memory nor a node"));
  EXPECT_THAT(problems_of(with("node = 1\n", "node = 1024\n")), HasSubstr("from 0 to 1023"));
  EXPECT_THAT(problems_of(with("node = 1\n", "node = 2\n")),
              HasSubstr("channel.node: 2 is that of dram-0"));
  EXPECT_THAT(problems_of(with("node = 1\n", "start = 0x180000000\nlength = \"2G\"\n")),
              HasSubstr("channel.start: 0x180000000+2G overlaps with 0x140000000+2G of dram-0"));
  EXPECT_THAT(problems_of(with("dram-1", "dram-0")), HasSubstr("\"dram-0\" is there twice"));
  EXPECT_THAT(problems_of(with("dram-1", "DRAM 1")), HasSubstr("\"DRAM 1\" is no name"));
  EXPECT_THAT(problems_of(with("name = \"dram-1\"\n", "")), HasSubstr("channel: has no name"));
  EXPECT_THAT(problems_of(with("read_mib_per_s", "read_mb")), HasSubstr("no such key"));
  EXPECT_THAT(problems_of(with("20000", "0")), HasSubstr("whole number from 1 to"));
  EXPECT_THAT(problems_of(std::string(kGood) + "[[group]]\nname = \"dram\"\n"),
              HasSubstr("group.name: \"dram\" is there twice"));
  EXPECT_THAT(problems_of("[[channel]"), HasSubstr("channels.toml:1: "));
}

class OnHost : public testing::Test {
 protected:
  std::vector<std::string> problems() const {
    std::vector<std::string> all;
    const ChannelsFile file = parse_channels_file(kGood, "c").file;
    for (const ConfigProblem& problem : check_channels(file, host_))
      all.push_back(problem.describe());
    return all;
  }

  HostMemory host_ = {.ram = {{0, 5 * kGib}},
                      .possible_nodes = {0, 1, 2},
                      .nodes = {{0, {{0, 4 * kGib}}}, {1, {{4 * kGib, kGib}}}}};
};

TEST_F(OnHost, GoodChannelsCanBeMade) {
  EXPECT_THAT(problems(), testing::IsEmpty());
}

TEST_F(OnHost, MemoryInUseAsRamIsRefused) {
  host_.ram.push_back({6 * kGib, 4 * kGib});
  EXPECT_THAT(problems(), testing::ElementsAre(testing::StartsWith(
                              "c:5: channel.start: 0x180000000+1G of dram-0 is in use as RAM")));
}

TEST_F(OnHost, BlocksAreThoseOfTheHost) {
  host_.block_bytes = 2 * kGib;
  EXPECT_THAT(problems(), testing::ElementsAre(testing::HasSubstr("multiples of 2 GiB")));
}

TEST_F(OnHost, IdsThatCannotBeAreRefused) {
  host_.possible_nodes = {0, 1};
  EXPECT_THAT(
      problems(),
      testing::ElementsAre(testing::HasSubstr("2 of dram-0 cannot be a node until the next boot")));
}

TEST_F(OnHost, ANodeToBeMadeHasNoMemoryAndOneToBeUsedHas) {
  host_.nodes = {{0, {{0, 4 * kGib}}}, {2, {{4 * kGib, kGib}}}};
  EXPECT_THAT(problems(), testing::ElementsAre(testing::HasSubstr("2 of dram-0 has memory already"),
                                               testing::HasSubstr("1 of dram-1 has no memory")));
}

TEST_F(OnHost, WhatIsMadeAlreadyIsGood) {
  host_.ram.push_back({5 * kGib, 2 * kGib});
  host_.nodes[2] = {{5 * kGib, 2 * kGib}};
  EXPECT_THAT(problems(), testing::IsEmpty());
  const ChannelsFile file = parse_channels_file(kGood, "").file;
  EXPECT_TRUE(is_made(file.channels[0], host_));
  EXPECT_TRUE(is_made(file.channels[1], host_));
  host_.nodes[2] = {{5 * kGib, 3 * kGib}};
  EXPECT_FALSE(is_made(file.channels[0], host_)) << "with memory of others";
}

}  // namespace
}  // namespace memsluice
