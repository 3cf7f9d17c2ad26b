// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/log.h"

#include <gtest/gtest.h>

namespace memsluice {
namespace {

TEST(Log, WritesPrioritiesAndLeavesOutWhatIsBelowItsLevel) {
  std::string written;
  Log log(LogLevel::kInfo, [&](std::string_view line) { written += line; });
  log.error("a {}", 1);
  log.debug("b");
  log.info("c");
  EXPECT_EQ(written, "<3>a 1\n<6>c\n");
}

TEST(Log, KeepsForeignTextOnOneLine) {
  std::string written;
  Log log(LogLevel::kInfo, [&](std::string_view line) { written += line; });
  log.warning("cgroup {}", "/a\n<0>forged\x1b[0m");
  EXPECT_EQ(written, "<4>cgroup /a?<0>forged?[0m\n");
}

}  // namespace
}  // namespace memsluice
