// SPDX-License-Identifier: GPL-2.0
// Each check of the emulated NIC is needed: without it, a test of the suite fails.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "daemon/lending/nic/emulated/checks.h"

namespace memsluice::nic {
namespace {

// Whether the suite passes on the NIC without @check. The scheduler's seeds are fixed.
bool passes_without(std::string_view check) {
  const std::string command =
      "MEMSLUICE_NIC_WITHOUT=" + std::string(check) +
      " timeout 300 " MEMSLUICE_NIC_MUTANT
      " --gtest_fail_fast --gtest_filter='*seeded_1*:EmulatedNicTest.*' >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class MutationTest : public testing::TestWithParam<std::string_view> {};

TEST(MutationTest, TheWholeNicPasses) {
  EXPECT_TRUE(passes_without("nothing"));
}

TEST_P(MutationTest, ATestNotices) {
  EXPECT_FALSE(passes_without(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Nic, MutationTest, testing::ValuesIn(kCheckNames),
                         [](const auto& check) { return std::string(check.param); });

}  // namespace
}  // namespace memsluice::nic
