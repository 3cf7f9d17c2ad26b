// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/toml_text.h"

#include <gtest/gtest.h>

namespace memsluice {
namespace {

TEST(LineOfStrayLetter, LooksOutsideOfStringsAndComments) {
  EXPECT_EQ(line_of_stray_letter(""), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = 1 # größe\n"), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = \"größe\"\n'größe' = 1\n"), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = [\"ö\",'ö', [{\"ö\"=1}]]\n"), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = \"\\\"ö\"\n"), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = \"\" # ö"), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = \"\"\"x\"\"\"\"\" ö"), 1u);
  EXPECT_EQ(line_of_stray_letter("a = 1\ngröße = 1\n"), 2u);
  EXPECT_EQ(line_of_stray_letter("a = 'x\\'ö"), 1u);
  EXPECT_EQ(line_of_stray_letter("a = \"x\nö = 1\n"), 2u);
  EXPECT_EQ(line_of_stray_letter("# ö\n\n\xa0"), 3u);
}

TEST(LineOfStrayLetter, LooksIntoMultiLineStrings) {
  EXPECT_EQ(line_of_stray_letter("a = \"\"\"\nsize\n\"\"\"\nb = 'ö'"), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = \"\"\"\nö\"\"\""), 2u);
  EXPECT_EQ(line_of_stray_letter("a = '''\n\n'ö'''"), 3u);
  EXPECT_EQ(line_of_stray_letter("a = \"\"\"\\ö\"\"\""), 1u);
}

// The parser reads on to the end of the word: 5"ö" is a wrong number to it.
TEST(LineOfStrayLetter, TakesNoQuoteInsideAWordForAString) {
  for (const char* toml : {"a = 5\"ö\"", "a = 5{\"ö\"", "a = [\n5=\"ö\"\n]", "a.\"ö\""})
    EXPECT_NE(line_of_stray_letter(toml), std::nullopt) << toml;
  EXPECT_EQ(line_of_stray_letter("a = \"\"\"x\"\"\"\"\"\"ö\""), 1u);
}

}  // namespace
}  // namespace memsluice
