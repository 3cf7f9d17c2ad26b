// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace memsluice {
namespace {

TEST(Channels, AreReadAndWritten) {
  EXPECT_EQ(*parse_channels("1:3,2:2,7"), (std::vector<Channel>{{1, 3}, {2, 2}, {7, 1}}));
  EXPECT_EQ(*parse_channels("0:0"), (std::vector<Channel>{{0, 0}}));
  EXPECT_TRUE(parse_channels("none")->empty());
  EXPECT_EQ(format_channels({{1, 3}, {2, 0}}), "1:3,2:0");
  EXPECT_EQ(format_channels({}), "none");
}

TEST(Channels, WhatMeansNothingIsRefused) {
  for (const char* text : {"", ",", "1,", ",1", "1:", ":1", "1:2:3", "a", "1:x", "-1", "1 ,2",
                           "4294967296", "1:4294967296", "none,1"}) {
    const auto channels = parse_channels(text);
    ASSERT_FALSE(channels.ok()) << text;
    EXPECT_EQ(channels.error().object, "channels");
  }
  std::string many = "0";
  for (int i = 1; i < MEMSLUICE_CHANNELS_MAX; i++) many += ",0";
  EXPECT_TRUE(parse_channels(many).ok());
  EXPECT_FALSE(parse_channels(many + ",0").ok());
}

TEST(Granule, IsAPowerOfTwoFromAPageOn) {
  EXPECT_EQ(*parse_granule("4K"), 0u);
  EXPECT_EQ(*parse_granule("2M"), 9u);
  EXPECT_EQ(*parse_granule("1G"), 18u);
  EXPECT_EQ(granule_bytes(9), 2u << 20);
  for (const char* text : {"2K", "2G", "3M", "0", "", "two"})
    EXPECT_EQ(parse_granule(text).error().object, "granule") << text;
}

TEST(PlacementError, SaysWhatIsWrong) {
  EXPECT_EQ(placement_error(ENODEV).message, "a node among them has no memory");
  EXPECT_EQ(placement_error(ERANGE).message, "the weights add up to more than 64");
  EXPECT_EQ(placement_error(EINVAL).code, ErrorCode::kBadRequest);
  EXPECT_EQ(placement_error(EOPNOTSUPP).code, ErrorCode::kUnavailable);
}

TEST(Placement, ChangesOfChannels) {
  EXPECT_TRUE(is_channel_change("+3"));
  EXPECT_TRUE(is_channel_change("-3,+1:2"));
  EXPECT_FALSE(is_channel_change("3,1"));
  EXPECT_FALSE(is_channel_change("none"));
  const std::vector<Channel> before = {{1, 3}, {2, 2}};
  const auto after = [&](const char* text) -> std::string {
    auto change = parse_channel_change(text);
    if (!change.ok()) return change.error().describe();
    auto channels = changed(before, *change);
    return channels.ok() ? format_channels(*channels) : channels.error().describe();
  };
  EXPECT_EQ(after("+3"), "1:3,2:2,3:1");
  EXPECT_EQ(after("+3:4,-1"), "2:2,3:4");
  EXPECT_EQ(after("-1,+3:4"), "2:2,3:4");
  EXPECT_EQ(after("+1:5"), "1:5,2:2");
  EXPECT_EQ(after("+5:0"), "1:3,2:2,5:0");
  EXPECT_EQ(after("-1,+1"), "2:2,1:1");
  EXPECT_EQ(after("-7"), "channels: node 7 is none of its channels (they are 1:3,2:2)");
  EXPECT_EQ(after("-1,-2"), "channels: none would be left (\"none\" lets the kernel place again)");
  for (const char* wrong : {"+", "-", "+3,4", "+3:x", "-3:1", "+3,", "+-3", "+99999999999"})
    EXPECT_THAT(after(wrong), testing::HasSubstr("is no change of channels")) << wrong;
}

}  // namespace
}  // namespace memsluice
