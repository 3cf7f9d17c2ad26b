// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/toml_text.h"

#include <gtest/gtest.h>

namespace memsluice {
namespace {

TEST(LineOfStrayLetter, LooksOutsideOfStringsAndComments) {
  EXPECT_EQ(line_of_stray_letter(""), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = 1 # größe\n"), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = \"größe\"\n'größe' = 1\n"), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = \"\"\"\n\"größe\"\n\"\"\"\nb = '''\nö'''\n"), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = \"\\\"ö\"\n"), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = \"\" # ö"), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = \"\"\"x\"\"\"\"\" ö"), 1u);
  EXPECT_EQ(line_of_stray_letter("a = \"\"\"x\"\"\"\"\"\"ö\""), std::nullopt);
  EXPECT_EQ(line_of_stray_letter("a = 1\ngröße = 1\n"), 2u);
  EXPECT_EQ(line_of_stray_letter("a = 'x\\'ö"), 1u);
  EXPECT_EQ(line_of_stray_letter("a = \"x\nö = 1\n"), 2u);
  EXPECT_EQ(line_of_stray_letter("# ö\n\n\xa0"), 3u);
}

}  // namespace
}  // namespace memsluice
