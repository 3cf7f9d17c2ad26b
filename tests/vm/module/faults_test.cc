// SPDX-License-Identifier: GPL-2.0
// Allocations that fail, one site after the other, and the module leaving in the middle.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include "tests/vm/module/life.h"
#include "tests/vm/module/machine.h"
#include "tests/vm/module/requests.h"

namespace memsluice::test {
namespace {

class Faults : public RequestTest {
 protected:
  // Every allocation may fail, not only those that nobody would miss.
  static bool can_inject() {
    const std::string debugfs = "/sys/kernel/debug/";
    if (access((debugfs + "failslab").c_str(), F_OK)) return false;
    for (const std::string kind : {"failslab/", "fail_page_alloc/"}) {
      write_file(debugfs + kind + "ignore-gfp-wait", "N");
      write_file(debugfs + kind + "verbose", "0");
    }
    write_file(debugfs + "fail_page_alloc/ignore-gfp-highmem", "N");
    write_file(debugfs + "fail_page_alloc/min-order", "0");
    return true;
  }

  // Calls with the Nth allocation of this thread failing. Return: what is left of N when it made
  // fewer; else 0.
  template <typename Call>
  static int with_failure(int nth, const Call& call) {
    Descriptor file(open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC));
    const std::string number = std::to_string(nth);
    EXPECT_EQ(pwrite(file.get(), number.data(), number.size(), 0),
              static_cast<ssize_t>(number.size()));
    call();
    char left[16] = {};
    EXPECT_GT(pread(file.get(), left, sizeof(left) - 1, 0), 0);
    EXPECT_EQ(pwrite(file.get(), "0", 1, 0), 1);
    return std::atoi(left);
  }

  // Return: how many allocations there are after the first SPARED.
  template <typename Call>
  static int fail_each(const Call& call, int spared = 0) {
    int nth = spared + 1;
    while (!with_failure(nth, call)) nth++;
    return nth - spared - 1;
  }

  // Opening a file allocates, too: it is opened before.
  static int open_device() { return open("/dev/" MEMSLUICE_DEVICE, O_RDWR | O_CLOEXEC); }
};

TEST_F(Faults, EachAllocationOfARequestFails) {
  if (!can_inject()) GTEST_SKIP() << "only the debug kernel has fault injection";
  Descriptor device(open_device());
  Pages pages(64 * kPageBytes, kSlow);
  Pages huge(kHugeBytes, kSlow, Pages::Huge::kAlways, 2);
  std::vector<void*> addresses;
  for (size_t at = 0; at < pages.bytes(); at += kPageBytes) addresses.push_back(pages.data() + at);
  addresses.push_back(huge.data());
  std::vector<int32_t> results(addresses.size());
  Life life(pages.data(), pages.bytes());
  int target = kFast;
  auto request = [&](memsluice_migrate_kind kind, uint64_t address, uint64_t length) {
    memsluice_request_status status;
    auto migrate = range_request(address, length, target, &status);
    migrate.kind = kind;
    migrate.flags = MEMSLUICE_MIGRATE_ALL_MAPPINGS;
    migrate.results =
        kind == MEMSLUICE_MIGRATE_ADDRESSES ? reinterpret_cast<uint64_t>(results.data()) : 0;
    migrate.pidfd = self_.get();
    const int error = ioctl_on(device.get(), MEMSLUICE_IOC_MIGRATE, &migrate);
    EXPECT_TRUE(error == 0 || error == -ENOMEM) << error;
    if (error == 0 && status.state == MEMSLUICE_REQUEST_DONE) expect_all_accounted(status);
    target = target == kFast ? kSlow : kFast;
  };
  EXPECT_GT(fail_each([&] {
              request(MEMSLUICE_MIGRATE_ADDRESSES, reinterpret_cast<uint64_t>(addresses.data()),
                      addresses.size());
            }),
            5);
  EXPECT_GT(fail_each([&] { request(MEMSLUICE_MIGRATE_RANGE, pages.address(), pages.bytes()); }),
            3);
  EXPECT_GT(fail_each([&] { request(MEMSLUICE_MIGRATE_RANGE, huge.address(), huge.bytes()); }), 3);
  EXPECT_TRUE(life.intact());
  EXPECT_TRUE(huge.intact());
}

TEST_F(Faults, EachAllocationOfATenantFails) {
  if (!can_inject()) GTEST_SKIP() << "only the debug kernel has fault injection";
  Cgroup cgroup("faults-tenant");
  Descriptor device(open_device());
  Descriptor directory(open(cgroup.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto set = sized<memsluice_tenant_set>();
  set.cgroup_fd = directory.get();
  set.policy = policy_tiering(kMib);
  auto clear = sized<memsluice_tenant_clear>();
  EXPECT_GT(fail_each([&] {
              const int error = ioctl_on(device.get(), MEMSLUICE_IOC_TENANT_SET, &set);
              EXPECT_TRUE(error == 0 || error == -ENOMEM) << error;
              clear.cgroup_id = set.cgroup_id;
              ioctl_on(device.get(), MEMSLUICE_IOC_TENANT_CLEAR, &clear);
            }),
            0);
  char text[4096];
  for (const char* file : {"status", "tenants", "requests", "hotness", "migration"})
    fail_each([&] {
      Descriptor shown(open((std::string("/proc/memsluice/") + file).c_str(), O_RDONLY));
      while (shown.get() >= 0 && read(shown.get(), text, sizeof(text)) > 0) {
      }
    });
}

TEST_F(Faults, EachAllocationOfLoadingFails) {
  if (!can_inject()) GTEST_SKIP() << "only the debug kernel has fault injection";
  ASSERT_EQ(unload_module(), 0);
  // Not finit_module(2): the file system would have to read while allocations fail.
  const std::string image = read_file(module_file());
  auto load_image = [&](const char* parameters) {
    return syscall(SYS_init_module, image.data(), image.size(), parameters) ? -errno : 0;
  };
  // The kernel's part of loading warns when its own allocations fail. It ends where parameters are
  // read: a bad one shows how many these are.
  constexpr int kMany = 1000000;
  const int kernels_own =
      kMany - with_failure(kMany, [&] { EXPECT_EQ(load_image("allow_unchecked=maybe"), -EINVAL); });
  const int sites = fail_each(
      [&] {
        const int error = load_image("");
        EXPECT_TRUE(error == 0 || error == -ENOMEM) << error;
        if (error == 0) {
          EXPECT_EQ(unload_module(), 0);
        }
      },
      kernels_own);
  std::cout << kernels_own << " allocations before the module's own, " << sites << " then\n";
  EXPECT_GT(sites, 50);
  EXPECT_EQ(load_module(), 0);
}

// Requests, tiering and reclaim (which asks the pools for their pages) go on while the module goes.
TEST_F(Faults, TheModuleLeavesInTheMiddle) {
  Cgroup cgroup("leaving");
  LivingProcess tenant(cgroup, 16 * kMib);
  Pages pages(16 * kMib, kSlow);
  Life life(pages.data(), pages.bytes());
  {
    Meanwhile reclaim([] { write_file("/proc/sys/vm/drop_caches", "3"); });
    for (int round = 0; round < 3; round++) {
      EXPECT_EQ(set_tenant(cgroup, policy_tiering(round % 2 ? 0 : MEMSLUICE_NO_LIMIT)), 0);
      move(pages.data(), pages.bytes(), round % 2 ? kSlow : kFast);
      memsluice_request_status status;
      {
        Descriptor request(start(pages, &status));
        EXPECT_EQ(unload_module(), -EWOULDBLOCK);
      }
      // The worker may still be at it.
      EXPECT_TRUE(eventually([] { return unload_module() == 0; }, 60));
      EXPECT_EQ(load_module(), 0);
    }
  }
  EXPECT_TRUE(tenant.ended_intact());
  EXPECT_TRUE(life.intact());
}

}  // namespace
}  // namespace memsluice::test
