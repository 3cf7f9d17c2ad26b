// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/format.h"

#include <gtest/gtest.h>

namespace memsluice {
namespace {

TEST(HumanBytes, HasAtMostFourDigits) {
  EXPECT_EQ(human_bytes(std::nullopt), "-");
  EXPECT_EQ(human_bytes(-1), "-");
  EXPECT_EQ(human_bytes(0), "0");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.0 KiB");
  EXPECT_EQ(human_bytes(256 << 20), "256 MiB");
  EXPECT_EQ(human_bytes(1.5 * (1 << 30)), "1.5 GiB");
  EXPECT_EQ(human_bytes(1023.9 * 1024 * 1024), "1.0 GiB");
  EXPECT_EQ(human_bytes(static_cast<double>(UINT64_MAX)), "16 EiB");
}

TEST(HumanDuration, ShowsTheTwoLargestUnits) {
  EXPECT_EQ(human_duration(59), "59 s");
  EXPECT_EQ(human_duration(61), "1 min 1 s");
  EXPECT_EQ(human_duration(7500), "2 h 5 min");
  EXPECT_EQ(human_duration(90000), "1 d 1 h");
}

TEST(Printable, LetsNoControlCharacterThrough) {
  EXPECT_EQ(printable("/redis.slice"), "/redis.slice");
  EXPECT_EQ(printable("a\033[2Jb\n\x7f"), "a\\x1b[2Jb\\x0a\\x7f");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "b"),
            "a\\x9bb");
  EXPECT_EQ(printable("größe"), "größe");
  EXPECT_EQ(printable("\xc2"), "\xc2");
}

TEST(Shortened, CountsCharactersAndNotBytes) {
  EXPECT_EQ(shortened("größe", 5), "größe");
  EXPECT_EQ(shortened("größer", 5), "größ~");
  EXPECT_EQ(shortened("abc", 1), "~");
  EXPECT_EQ(shortened("abc", 0), "");
}

TEST(Table, AlignsItsColumns) {
  Table table({{"NAME"}, {"SIZE", Align::kRight}, {"NOTE"}});
  table.add_row({"größe", "1", ""});
  table.add_row({"b", "10000", "x"});
  EXPECT_EQ(table.render(),
            "NAME    SIZE  NOTE\n"
            "größe      1\n"
            "b      10000  x\n");
}

}  // namespace
}  // namespace memsluice
