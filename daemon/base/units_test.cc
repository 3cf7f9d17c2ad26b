// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace memsluice {
namespace {

TEST(ParseBytes, TakesPlainNumbersAndBinaryUnits) {
  EXPECT_EQ(*parse_bytes("0"), 0u);
  EXPECT_EQ(*parse_bytes("4096"), 4096u);
  EXPECT_EQ(*parse_bytes("1K"), 1024u);
  EXPECT_EQ(*parse_bytes("512M"), 512u << 20);
  EXPECT_EQ(*parse_bytes("512MiB"), 512u << 20);
  EXPECT_EQ(*parse_bytes("1.5G"), 3ull << 29);
  EXPECT_EQ(*parse_bytes("15P"), 15ull << 50);
  EXPECT_EQ(*parse_bytes("18446744073709551615"), std::numeric_limits<uint64_t>::max());
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* text :
       {"", "M", "-1", "+1", " 1", "1 ", "1 M", "1m", "1MB", "1MiBs", "0x10", "1.M", "1.5",
        "1.2345G", ".5G", "18446744073709551616", "16384P", "18446744073709551615K", "none"}) {
    auto bytes = parse_bytes(text);
    ASSERT_FALSE(bytes.ok()) << text;
    EXPECT_EQ(bytes.error().code, ErrorCode::kBadRequest);
    EXPECT_EQ(bytes.error().message, "\"" + std::string(text) + "\" is not a size");
    EXPECT_EQ(bytes.error().hint, "write it as 512M, 1.5G or 4096");
  }
}

TEST(ParsePercent, TakesWholeNumbersUpTo100) {
  EXPECT_EQ(*parse_percent("0%"), 0u);
  EXPECT_EQ(*parse_percent("100%"), 100u);
  for (const char* text : {"", "%", "30", "101%", "-1%", "3.5%", "30%%"})
    EXPECT_FALSE(parse_percent(text).ok()) << text;
}

TEST(ParseNumber, KeepsToItsBounds) {
  EXPECT_EQ(*parse_number("7", 1, 7), 7u);
  for (const char* text : {"", "0", "8", "7 ", "seven"})
    EXPECT_FALSE(parse_number(text, 1, 7).ok());
}

TEST(FormatBytes, IsShort) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1 KiB");
  EXPECT_EQ(format_bytes(3ull << 29), "1.5 GiB");
  EXPECT_EQ(format_bytes((1ull << 30) - 1), "1 GiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<uint64_t>::max()), "16384 PiB");
}

RC_GTEST_PROP(FormatBytes, ExactTextMeansTheSameBytes, (uint64_t bytes)) {
  RC_ASSERT(*parse_bytes(format_bytes_exact(bytes)) == bytes);
}

RC_GTEST_PROP(FormatBytes, TextForPeopleIsNeverFarOff, (uint64_t bytes)) {
  std::string text = format_bytes(bytes);
  std::erase(text, ' ');
  auto parsed = parse_bytes(text);
  RC_PRE(bytes < 1ull << 63);
  RC_ASSERT(std::fabs(static_cast<double>(*parsed) - static_cast<double>(bytes)) <=
            0.051 * static_cast<double>(bytes));
}

}  // namespace
}  // namespace memsluice
