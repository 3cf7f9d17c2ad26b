// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/paths.h"

#include <gtest/gtest.h>

namespace memsluice {
namespace {

TEST(Cgroup2Mount, IsTheFirstOfItsType) {
  EXPECT_EQ(cgroup2_mount("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"), "/sys/fs/cgroup");
  EXPECT_EQ(cgroup2_mount("tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
                          "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
                          "none /sys/fs/cgroup/unified cgroup2 rw 0 0\n"),
            "/sys/fs/cgroup/unified");
  EXPECT_EQ(cgroup2_mount("proc /proc proc rw 0 0\n"), "");
}

}  // namespace
}  // namespace memsluice
