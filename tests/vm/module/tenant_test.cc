// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/vm/module/world.h"

namespace memsluice::test {
namespace {

std::vector<uint64_t> list_tenants() {
  std::vector<uint64_t> ids(64);
  auto list = sized<memsluice_tenant_list>();
  list.capacity = static_cast<uint32_t>(ids.size());
  list.ids = reinterpret_cast<uint64_t>(ids.data());
  EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_TENANT_LIST, &list), 0);
  EXPECT_LE(list.count, ids.size());
  ids.resize(list.count);
  return ids;
}

bool is_tenant(uint64_t id) {
  int error;
  tenant_status(id, &error);
  return error == 0;
}

TEST(Tenant, ReadsBackWhatWasSet) {
  Cgroup cgroup("read-back");
  auto policy = policy_tiering(123 << 20);
  policy.promote_mib_per_s = 7;
  policy.demote_mib_per_s = 0;
  ASSERT_EQ(set_tenant(cgroup, policy), 0);
  int error;
  auto status = tenant_status(cgroup.id(), &error);
  ASSERT_EQ(error, 0);
  EXPECT_EQ(std::memcmp(&status.policy, &policy, sizeof(policy)), 0);
  EXPECT_NE(read_file("/proc/memsluice/tenants").find(" /read-back tiering 128974848 7 0 "),
            std::string::npos);
  policy.promote_mib_per_s = 8;
  ASSERT_EQ(set_tenant(cgroup, policy), 0);
  EXPECT_EQ(tenant_status(cgroup.id(), &error).policy.promote_mib_per_s, 8U);
  EXPECT_EQ(clear_tenant(cgroup.id()), 0);
  EXPECT_EQ(clear_tenant(cgroup.id()), -ENOENT);
}

TEST(Tenant, ListIsInOrderAndSaysWhatDidNotFit) {
  Cgroup first("list-1"), second("list-2"), third("list-3");
  for (const auto* cgroup : {&second, &third, &first})
    ASSERT_EQ(set_tenant(*cgroup, policy_off()), 0);
  auto ids = list_tenants();
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_GE(ids.size(), 3U);
  uint64_t room[2] = {};
  auto list = sized<memsluice_tenant_list>();
  list.capacity = 1;
  list.ids = reinterpret_cast<uint64_t>(room);
  ASSERT_EQ(device_ioctl(MEMSLUICE_IOC_TENANT_LIST, &list), 0);
  EXPECT_EQ(list.count, ids.size());
  EXPECT_EQ(room[0], ids[0]);
  EXPECT_EQ(room[1], 0U);
}

TEST(Tenant, GoesWithItsCgroup) {
  Cgroup cgroup("short-lived");
  ASSERT_EQ(set_tenant(cgroup, policy_off()), 0);
  auto id = cgroup.id();
  cgroup.remove();
  EXPECT_TRUE(eventually([&] { return !is_tenant(id); }));
  EXPECT_EQ(read_file("/proc/memsluice/tenants").find("short-lived"), std::string::npos);
}

TEST(Tenant, RefusesWhatIsNoPolicy) {
  Cgroup cgroup("refused");
  auto policy = policy_off();
  policy.flags = 2;
  EXPECT_EQ(set_tenant(cgroup, policy), -EINVAL);
  policy = policy_off();
  policy.reserved = 1;
  EXPECT_EQ(set_tenant(cgroup, policy), -EINVAL);
  policy = policy_off();
  policy.promote_mib_per_s = MEMSLUICE_MIB_PER_S_MAX + 1;
  EXPECT_EQ(set_tenant(cgroup, policy), -EINVAL);
  policy = policy_off();
  policy.demote_mib_per_s = MEMSLUICE_MIB_PER_S_MAX + 1;
  EXPECT_EQ(set_tenant(cgroup, policy), -EINVAL);
  EXPECT_FALSE(is_tenant(cgroup.id()));
}

TEST(Tenant, RefusesWhatIsNoCgroup) {
  auto set = sized<memsluice_tenant_set>();
  set.policy = policy_off();
  set.cgroup_fd = -1;
  EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_TENANT_SET, &set), -EBADF);
  Descriptor directory(open("/tmp", O_RDONLY | O_DIRECTORY));
  set.cgroup_fd = directory.get();
  EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_TENANT_SET, &set), -EBADF);
}

TEST(Tenant, RefusesACgroupToWhichNothingIsCharged) {
  Cgroup parent("no-controller");
  Cgroup child("child", parent.path());
  EXPECT_EQ(set_tenant(child, policy_off()), -EOPNOTSUPP);
}

TEST(Tenant, EverythingChargedToItLeavesANode) {
  Cgroup cgroup("evacuated");
  ASSERT_EQ(set_tenant(cgroup, policy_off()), 0);
  // Shared memory that nobody maps any more is found, too: only its frames know whose it is.
  pid_t child = start_ready_child([&](auto ready) {
    cgroup.enter(getpid());
    int file = memfd_create("unmapped", 0);
    if (file < 0 || ftruncate(file, 4 << 20)) return 1;
    void* shared = mmap(nullptr, 4 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) return 2;
    std::memset(shared, 7, 4 << 20);
    munmap(shared, 4 << 20);
    Pages base(8 << 20, kSlow), huge(2 * kHugeBytes, kSlow, Pages::Huge::kAlways);
    ready();
    pause();
    return 0;
  });
  auto move = [&](int from, int to) {
    auto status = sized<memsluice_request_status>();
    auto migrate = sized<memsluice_migrate>();
    migrate.kind = MEMSLUICE_MIGRATE_TENANT_NODE;
    migrate.pidfd = -1;
    migrate.cgroup_id = cgroup.id();
    migrate.source_node = from;
    migrate.target_node = to;
    migrate.status = reinterpret_cast<uint64_t>(&status);
    EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_MIGRATE, &migrate), 0);
    return status;
  };
  auto bytes_on = [&](int node) {
    auto text = read_file(cgroup.path() + "/memory.numa_stat");
    uint64_t bytes = 0;
    for (const char* kind : {"anon N", "\nshmem N"}) {
      auto line = text.find(kind);
      auto at = text.find("N" + std::to_string(node) + "=", line);
      bytes += std::stoull(text.substr(at + 3));
    }
    return bytes;
  };
  auto status = move(kSlow, kFast);
  EXPECT_GE(status.moved_pages, (size_t{8} << 20) / kPageBytes + 1024);
  EXPECT_TRUE(eventually([&] { return bytes_on(kSlow) < (1 << 20); }));
  status = move(kFast, kSlow);
  EXPECT_GE(status.moved_pages, (size_t{12} << 20) / kPageBytes + 1024);
  // Charges move with the pages; the statistics of cgroups are brought up to date every 2 s.
  EXPECT_TRUE(eventually([&] { return bytes_on(kFast) < (1 << 20); }));
  kill(child, SIGKILL);
  wait_child(child);
}

TEST(Tenant, ACgroupMayGoWhileItsPagesMove) {
  for (int i = 0; i < 10; i++) {
    Cgroup cgroup("going");
    ASSERT_EQ(set_tenant(cgroup, policy_tiering(MEMSLUICE_NO_LIMIT)), 0);
    start_ready_child([&](auto ready) {
      cgroup.enter(getpid());
      Pages pages(32 << 20, kSlow);
      ready();
      pause();
      return 0;
    });
    auto migrate = sized<memsluice_migrate>();
    migrate.kind = MEMSLUICE_MIGRATE_TENANT_NODE;
    migrate.flags = MEMSLUICE_MIGRATE_ASYNC;
    migrate.pidfd = -1;
    migrate.cgroup_id = cgroup.id();
    migrate.source_node = kSlow;
    migrate.target_node = kFast;
    int fd = device_ioctl(MEMSLUICE_IOC_MIGRATE, &migrate);
    ASSERT_GE(fd, 0);
    Descriptor request(fd);
    usleep(static_cast<useconds_t>(i) * 3000);
    auto id = cgroup.id();
    cgroup.remove();
    EXPECT_TRUE(eventually([&] { return !is_tenant(id); }));
    auto status = sized<memsluice_request_status>();
    EXPECT_TRUE(eventually([&] {
      return ioctl_on(fd, MEMSLUICE_IOC_REQUEST_STATUS, &status) == 0 &&
             status.state != MEMSLUICE_REQUEST_RUNNING;
    }));
    EXPECT_EQ(status.state, MEMSLUICE_REQUEST_DONE);
  }
}

}  // namespace
}  // namespace memsluice::test
