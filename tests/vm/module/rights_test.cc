// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "tests/vm/module/world.h"

namespace memsluice::test {
namespace {

constexpr uid_t kNobody = 65534;
constexpr uid_t kSomebody = 1234;

bool become(uid_t user) {
  return setgroups(0, nullptr) == 0 && setresgid(user, user, user) == 0 &&
         setresuid(user, user, user) == 0;
}

// The result of a call as an exit status: errno, or 0.
int as_status(int result) {
  return result < 0 ? -result : 0;
}

int migrate_process(pid_t pid, uint64_t address, uint64_t length, uint32_t flags = 0) {
  Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  auto migrate = sized<memsluice_migrate>();
  migrate.kind = MEMSLUICE_MIGRATE_RANGE;
  migrate.flags = flags;
  migrate.pidfd = pidfd.get();
  migrate.source_node = -1;
  migrate.target_node = kFast;
  migrate.address = address;
  migrate.length = length;
  return device_ioctl(MEMSLUICE_IOC_MIGRATE, &migrate);
}

TEST(Rights, AnyoneMayMoveTheirOwnPages) {
  EXPECT_EQ(in_child([] {
              if (!become(kNobody)) return 100;
              Pages pages(1 << 20, kSlow);
              int error = as_status(migrate_process(getpid(), pages.address(), pages.bytes()));
              if (error) return error;
              return pages.count_on(kFast) == pages.bytes() / kPageBytes && pages.intact() ? 0
                                                                                           : 101;
            }),
            0);
}

TEST(Rights, NobodyMayMoveOthersPages) {
  EXPECT_EQ(in_child([] {
              if (!become(kNobody)) return 100;
              return as_status(migrate_process(1, 0, uint64_t{1} << 47));
            }),
            EPERM);
}

TEST(Rights, PagesOfOthersNeedACapability) {
  EXPECT_EQ(in_child([] {
              if (!become(kSomebody)) return 100;
              return as_status(
                  migrate_process(getpid(), 0, uint64_t{1} << 47, MEMSLUICE_MIGRATE_ALL_MAPPINGS));
            }),
            EPERM);
}

TEST(Rights, PoliciesNeedACapability) {
  Cgroup cgroup("rights");
  ASSERT_EQ(set_tenant(cgroup, policy_off()), 0);
  EXPECT_EQ(in_child([&] {
              if (!become(kNobody)) return 100;
              return as_status(set_tenant(cgroup, policy_off()));
            }),
            EPERM);
  EXPECT_EQ(in_child([&] {
              if (!become(kNobody)) return 100;
              return as_status(clear_tenant(cgroup.id()));
            }),
            EPERM);
  EXPECT_EQ(in_child([&] {
              if (!become(kNobody)) return 100;
              auto migrate = sized<memsluice_migrate>();
              migrate.kind = MEMSLUICE_MIGRATE_TENANT_NODE;
              migrate.pidfd = -1;
              migrate.cgroup_id = cgroup.id();
              migrate.source_node = kSlow;
              migrate.target_node = kFast;
              return as_status(device_ioctl(MEMSLUICE_IOC_MIGRATE, &migrate));
            }),
            EPERM);
}

TEST(Rights, QueuesAreForRootOnly) {
  EXPECT_EQ(in_child([] {
              if (!become(kNobody)) return 100;
              auto act = sized<memsluice_engine_act>();
              return as_status(device_ioctl(MEMSLUICE_IOC_ENGINE_ACT, &act));
            }),
            EPERM);
}

TEST(Rights, WhoHasWhichPagesIsForRootOnly) {
  EXPECT_EQ(in_child([] {
              if (!become(kNobody)) return 100;
              auto census = sized<memsluice_census>();
              return as_status(device_ioctl(MEMSLUICE_IOC_CENSUS, &census));
            }),
            EPERM);
  EXPECT_EQ(in_child([] {
              if (!become(kNobody)) return 100;
              return open("/proc/memsluice/census", O_RDONLY) < 0 ? errno : 0;
            }),
            EACCES);
}

TEST(Rights, KnobsAreForRootOnly) {
  EXPECT_EQ(in_child([] {
              if (!become(kNobody)) return 100;
              return open("/sys/kernel/memsluice/scan_period_ms", O_WRONLY) < 0 ? errno : 0;
            }),
            EACCES);
}

TEST(Rights, TheCpusetOfTheProcessHolds) {
  Cgroup cgroup("only-slow");
  cgroup.write("cpuset.mems", "1");
  pid_t child = start_child([&] {
    cgroup.enter(getpid());
    pause();
    return 0;
  });
  ASSERT_TRUE(eventually([&] {
    return read_file("/proc/" + std::to_string(child) + "/cgroup").find("only-slow") !=
           std::string::npos;
  }));
  EXPECT_EQ(migrate_process(child, 0, uint64_t{1} << 47), -EACCES);
  kill(child, SIGKILL);
  wait_child(child);
}

}  // namespace
}  // namespace memsluice::test
