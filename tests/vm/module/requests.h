// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/vm/module/world.h"

namespace memsluice::test {

inline int open_pidfd(pid_t pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

inline uint64_t refused(const memsluice_request_status& status) {
  uint64_t sum = 0;
  for (uint64_t pages : status.refused_pages) sum += pages;
  return sum;
}

// Every page that was looked at has exactly one outcome.
inline void expect_all_accounted(const memsluice_request_status& status) {
  EXPECT_EQ(status.seen_pages, status.moved_pages + status.already_there_pages + refused(status));
}

// The status of a request that has been started, when it has ended.
inline memsluice_request_status ended(int fd) {
  pollfd poll_fd = {fd, POLLIN, 0};
  EXPECT_EQ(poll(&poll_fd, 1, 60000), 1);
  auto status = sized<memsluice_request_status>();
  EXPECT_EQ(ioctl_on(fd, MEMSLUICE_IOC_REQUEST_STATUS, &status), 0);
  return status;
}

// Moves everything that a process has mapped. Return: 0 or a negative errno.
inline int move_process(int pidfd, int node, memsluice_request_status* status) {
  auto migrate = range_request(0, uint64_t{1} << 47, node, status);
  migrate.pidfd = pidfd;
  return device_ioctl(MEMSLUICE_IOC_MIGRATE, &migrate);
}

// Requests to move pages of this process. In the end nothing is isolated that was not before.
class RequestTest : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(eventually([] { return isolated_pages() == 0; }, 20)) << isolated_pages();
  }

  int run(memsluice_migrate* migrate) {
    migrate->pidfd = self_.get();
    return device_ioctl(MEMSLUICE_IOC_MIGRATE, migrate);
  }

  // Moves what is mapped in a range.
  memsluice_request_status move(const char* start, size_t bytes, int node, uint32_t flags = 0) {
    memsluice_request_status status;
    auto migrate = range_request(reinterpret_cast<uint64_t>(start), bytes, node, &status);
    migrate.flags = flags;
    EXPECT_EQ(run(&migrate), 0);
    EXPECT_EQ(status.state, MEMSLUICE_REQUEST_DONE);
    expect_all_accounted(status);
    return status;
  }

  // The descriptor of a request that goes on meanwhile.
  int start(const char* start, size_t bytes, int node, uint32_t flags,
            memsluice_request_status* status) {
    auto migrate = range_request(reinterpret_cast<uint64_t>(start), bytes, node, status);
    migrate.flags = flags | MEMSLUICE_MIGRATE_ASYNC;
    return run(&migrate);
  }
  int start(const Pages& pages, memsluice_request_status* status) {
    return start(pages.data(), pages.bytes(), kFast, 0, status);
  }

  Descriptor self_{open_pidfd(getpid())};
};

}  // namespace memsluice::test
