// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/knobs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/fd.h"
#include "daemon/base/temporary_directory.h"

namespace memsluice {
namespace {

using testing::ElementsAre;

class KnobsTest : public testing::Test {
 protected:
  KnobsTest() {
    sysfs_.write("/scan_period_ms", "1000\n");
    sysfs_.write("/cool_scans", "8\n");
    sysfs_.write("/release", "1\n");
    std::filesystem::permissions(sysfs_.path("/release"), std::filesystem::perms::owner_read);
  }
  std::string value(const std::string& name) { return *knobs_.read(name); }

  TemporaryDirectory sysfs_;
  Knobs knobs_{sysfs_.path()};
};

TEST_F(KnobsTest, AreThoseThatCanBeWritten) {
  EXPECT_THAT(*knobs_.names(), ElementsAre("cool_scans", "scan_period_ms"));
}

TEST_F(KnobsTest, ApplyWritesWhatIsDifferent) {
  EXPECT_EQ(*knobs_.apply({{"scan_period_ms", "500"}, {"cool_scans", "8"}}), 1u);
  EXPECT_EQ(value("scan_period_ms"), "500");
  EXPECT_EQ(*knobs_.apply({{"scan_period_ms", "500"}}), 0u);
}

TEST_F(KnobsTest, AnUnknownNameChangesNothing) {
  auto applied = knobs_.apply({{"cool_scans", "9"}, {"speed", "1"}});
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().describe(), "module.speed: the module has no such value in " +
                                            sysfs_.path() +
                                            " (it has: cool_scans, scan_period_ms)");
  EXPECT_EQ(value("cool_scans"), "8");
}

TEST_F(KnobsTest, ARefusedValueTakesTheOthersBack) {
  // A sealed file refuses writes, as the module does what is out of bounds.
  Fd sealed(::memfd_create("sealed", MFD_ALLOW_SEALING));
  ASSERT_EQ(::write(sealed.get(), "1000\n", 5), 5);
  ASSERT_EQ(::fcntl(sealed.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  sysfs_.remove("/scan_period_ms");
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(sealed.get()),
                                  sysfs_.path("/scan_period_ms"));
  auto applied = knobs_.apply({{"cool_scans", "9"}, {"scan_period_ms", "0"}});
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(
      applied.error().describe(),
      "module.scan_period_ms: the module refuses \"0\": write: Operation not permitted (it was "
      "1000; docs/abi says what it may be)");
  EXPECT_EQ(value("cool_scans"), "8");
}

}  // namespace
}  // namespace memsluice
