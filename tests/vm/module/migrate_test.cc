// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "tests/vm/module/requests.h"

namespace memsluice::test {
namespace {

using Migrate = RequestTest;

TEST_F(Migrate, MovesARangeOfBasePages) {
  Pages pages(8 << 20, kSlow);
  memsluice_request_status status;
  auto migrate = range_request(pages, kFast, &status);
  ASSERT_EQ(run(&migrate), 0);
  EXPECT_EQ(status.state, MEMSLUICE_REQUEST_DONE);
  EXPECT_EQ(status.moved_pages, pages.bytes() / kPageBytes);
  EXPECT_EQ(status.total_pages, status.seen_pages);
  expect_all_accounted(status);
  EXPECT_EQ(pages.count_on(kFast), pages.bytes() / kPageBytes);
  EXPECT_TRUE(pages.intact());
}

TEST_F(Migrate, MovesHugePagesWhole) {
  Pages pages(4 * kHugeBytes, kSlow, Pages::Huge::kAlways);
  memsluice_request_status status;
  auto migrate = range_request(pages, kFast, &status);
  ASSERT_EQ(run(&migrate), 0);
  EXPECT_EQ(status.moved_pages, pages.bytes() / kPageBytes);
  EXPECT_EQ(pages.count_on(kFast), pages.bytes() / kPageBytes);
  EXPECT_TRUE(pages.intact());
  auto smaps = read_file("/proc/self/smaps");
  char start[32];
  std::snprintf(start, sizeof(start), "%lx-", static_cast<unsigned long>(pages.address()));
  auto at = smaps.find(start);
  ASSERT_NE(at, std::string::npos);
  auto huge = smaps.find("AnonHugePages:", at);
  EXPECT_EQ(std::stoul(smaps.substr(huge + 14)), pages.bytes() / 1024);
}

TEST_F(Migrate, SaysWhatWasThereAlready) {
  Pages pages(1 << 20, kFast);
  memsluice_request_status status;
  auto migrate = range_request(pages, kFast, &status);
  ASSERT_EQ(run(&migrate), 0);
  EXPECT_EQ(status.moved_pages, 0U);
  EXPECT_EQ(status.already_there_pages, pages.bytes() / kPageBytes);
}

TEST_F(Migrate, AddressesGetEachTheirResult) {
  Pages pages(16 * kPageBytes, kSlow);
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < 16; i += 2) addresses.push_back(pages.address() + i * kPageBytes + 5);
  addresses.push_back(0x1000);  // nothing is mapped there
  addresses.push_back(~0ULL);   // nor can anything be there
  std::vector<int32_t> results(addresses.size(), 77);
  auto status = sized<memsluice_request_status>();
  auto migrate = sized<memsluice_migrate>();
  migrate.kind = MEMSLUICE_MIGRATE_ADDRESSES;
  migrate.source_node = -1;
  migrate.target_node = kFast;
  migrate.address = reinterpret_cast<uint64_t>(addresses.data());
  migrate.length = addresses.size();
  migrate.results = reinterpret_cast<uint64_t>(results.data());
  migrate.status = reinterpret_cast<uint64_t>(&status);
  ASSERT_EQ(run(&migrate), 0);
  for (size_t i = 0; i < 8; i++) EXPECT_EQ(results[i], kFast) << i;
  EXPECT_EQ(results[8], -1 - MEMSLUICE_REFUSED_ABSENT);
  EXPECT_EQ(results[9], -1 - MEMSLUICE_REFUSED_ABSENT);
  EXPECT_EQ(status.moved_pages, 8U);
  EXPECT_EQ(status.refused_pages[MEMSLUICE_REFUSED_ABSENT], 2U);
  expect_all_accounted(status);
  EXPECT_EQ(pages.count_on(kFast), 8U);
  EXPECT_TRUE(pages.intact());
}

// Adjacent addresses are walked as one range: what is in between must not shift what is said.
TEST_F(Migrate, AddressesInARowGetEachTheirResult) {
  Pages pages(600 * kPageBytes, kSlow);
  Pages huge(kHugeBytes, kSlow, Pages::Huge::kAlways, 2);
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  Descriptor reader(pipe_fds[0]), writer(pipe_fds[1]);
  iovec vector = {pages.data() + 5 * kPageBytes, kPageBytes};
  ASSERT_EQ(vmsplice(writer.get(), &vector, 1, 0), static_cast<ssize_t>(kPageBytes));
  move(pages.data() + 7 * kPageBytes, kPageBytes, kFast);
  ASSERT_EQ(madvise(pages.data() + 9 * kPageBytes, kPageBytes, MADV_DONTNEED), 0);
  std::vector<uint64_t> addresses;
  std::vector<int32_t> expected;
  // Through the huge page, then all base pages, the first of them once more.
  for (size_t i = 0; i < 3; i++) addresses.push_back(huge.address() + i * kPageBytes);
  for (size_t i = 0; i < 600; i++) addresses.push_back(pages.address() + i * kPageBytes);
  addresses.push_back(pages.address());
  expected.assign(addresses.size(), kFast);
  expected[3 + 5] = -1 - MEMSLUICE_REFUSED_PINNED;
  expected[3 + 9] = -1 - MEMSLUICE_REFUSED_ABSENT;
  std::vector<int32_t> results(addresses.size(), 77);
  memsluice_request_status status;
  auto migrate =
      range_request(reinterpret_cast<uint64_t>(addresses.data()), addresses.size(), kFast, &status);
  migrate.kind = MEMSLUICE_MIGRATE_ADDRESSES;
  migrate.results = reinterpret_cast<uint64_t>(results.data());
  ASSERT_EQ(run(&migrate), 0);
  EXPECT_EQ(results, expected);
  EXPECT_EQ(status.moved_pages, 512U + 597U);
  EXPECT_EQ(status.refused_pages[MEMSLUICE_REFUSED_PINNED], 1U);
  EXPECT_EQ(status.refused_pages[MEMSLUICE_REFUSED_ABSENT], 1U);
  expect_all_accounted(status);
  EXPECT_TRUE(huge.intact());
}

TEST_F(Migrate, AHugePageNamedTwiceMovesOnce) {
  Pages pages(kHugeBytes, kSlow, Pages::Huge::kAlways);
  uint64_t addresses[] = {pages.address(), pages.address() + 17 * kPageBytes};
  int32_t results[2];
  auto migrate = sized<memsluice_migrate>();
  migrate.kind = MEMSLUICE_MIGRATE_ADDRESSES;
  migrate.source_node = -1;
  migrate.target_node = kFast;
  migrate.address = reinterpret_cast<uint64_t>(addresses);
  migrate.length = 2;
  migrate.results = reinterpret_cast<uint64_t>(results);
  ASSERT_EQ(run(&migrate), 0);
  EXPECT_EQ(results[0], kFast);
  EXPECT_EQ(results[1], kFast);
  EXPECT_TRUE(pages.intact());
}

TEST_F(Migrate, RefusesPinnedPages) {
  // vmsplice() of a pipe holds plain references on the pages, for as long as it likes.
  Pages pages(4 * kPageBytes, kSlow);
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  Descriptor reader(pipe_fds[0]), writer(pipe_fds[1]);
  iovec vector = {pages.data(), kPageBytes};
  ASSERT_EQ(vmsplice(writer.get(), &vector, 1, 0), static_cast<ssize_t>(kPageBytes));
  memsluice_request_status status;
  auto migrate = range_request(pages, kFast, &status);
  ASSERT_EQ(run(&migrate), 0);
  EXPECT_EQ(status.refused_pages[MEMSLUICE_REFUSED_PINNED], 1U);
  EXPECT_EQ(status.moved_pages, 3U);
  expect_all_accounted(status);
  EXPECT_EQ(nodes_of(pages.data(), kPageBytes)[0], kSlow);
  EXPECT_TRUE(pages.intact());
}

TEST_F(Migrate, RefusesPagesOfOthersUnlessAsked) {
  Pages pages(64 * kPageBytes, kSlow);
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  Descriptor reader(pipe_fds[0]);
  std::optional<Descriptor> writer(std::in_place, pipe_fds[1]);
  pid_t child = start_child([&] {
    char byte;
    writer.reset();
    return read(pipe_fds[0], &byte, 1) == 0 && pages.intact() ? 0 : 1;
  });
  memsluice_request_status status;
  auto migrate = range_request(pages, kFast, &status);
  ASSERT_EQ(run(&migrate), 0);
  EXPECT_EQ(status.refused_pages[MEMSLUICE_REFUSED_SHARED], 64U);
  migrate.flags = MEMSLUICE_MIGRATE_ALL_MAPPINGS;
  status = sized<memsluice_request_status>();
  ASSERT_EQ(run(&migrate), 0);
  EXPECT_EQ(status.moved_pages, 64U);
  EXPECT_TRUE(pages.intact());
  writer.reset();
  EXPECT_EQ(wait_child(child), 0);
}

TEST_F(Migrate, RefusesWhenTheTargetIsFull) {
  // More than the fast node has, so that at the end nothing is free.
  Pages pages(size_t{640} << 20, kSlow);
  memsluice_request_status status;
  auto migrate = range_request(pages, kFast, &status);
  ASSERT_EQ(run(&migrate), 0);
  EXPECT_GT(status.moved_pages, 0U);
  EXPECT_GT(status.refused_pages[MEMSLUICE_REFUSED_NO_MEMORY], 0U);
  expect_all_accounted(status);
  EXPECT_EQ(pages.count_on(kFast) + pages.count_on(kSlow), pages.bytes() / kPageBytes);
  EXPECT_TRUE(pages.intact());
}

TEST_F(Migrate, MovesMlockedPages) {
  Pages pages(1 << 20, kSlow);
  ASSERT_EQ(mlock(pages.data(), pages.bytes()), 0);
  memsluice_request_status status;
  auto migrate = range_request(pages, kFast, &status);
  ASSERT_EQ(run(&migrate), 0);
  EXPECT_EQ(status.moved_pages, pages.bytes() / kPageBytes);
  EXPECT_TRUE(pages.intact());
}

TEST_F(Migrate, HugetlbIsRefusedByName) {
  write_file("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "2");
  void* area = mmap(nullptr, 2 * kHugeBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  ASSERT_NE(area, MAP_FAILED);
  std::memset(area, 1, 2 * kHugeBytes);
  auto status = sized<memsluice_request_status>();
  auto migrate = sized<memsluice_migrate>();
  migrate.kind = MEMSLUICE_MIGRATE_RANGE;
  migrate.source_node = -1;
  migrate.target_node = kFast;
  migrate.address = reinterpret_cast<uint64_t>(area);
  migrate.length = 2 * kHugeBytes;
  migrate.status = reinterpret_cast<uint64_t>(&status);
  EXPECT_EQ(run(&migrate), 0);
  EXPECT_EQ(status.refused_pages[MEMSLUICE_REFUSED_HUGETLB], 1024U);
  munmap(area, 2 * kHugeBytes);
  write_file("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "0");
}

TEST_F(Migrate, WritersNeverSeeATornPage) {
  Pages pages(16 << 20, kSlow);
  auto* words = reinterpret_cast<std::atomic<uint64_t>*>(pages.data());
  const size_t count = pages.bytes() / sizeof(uint64_t);
  for (size_t i = 0; i < count; i++) words[i] = 0;
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> rounds = 0;
  std::thread writer([&] {
    while (!stop) {
      for (size_t i = 0; i < count; i += 64) words[i].fetch_add(1);
      rounds++;
    }
  });
  for (int i = 0; i < 6; i++) {
    memsluice_request_status status;
    auto migrate = range_request(pages, i % 2 ? kSlow : kFast, &status);
    EXPECT_EQ(run(&migrate), 0);
  }
  stop = true;
  writer.join();
  for (size_t i = 0; i < count; i += 64) ASSERT_EQ(words[i], rounds) << i;
}

TEST_F(Migrate, AnAsynchronousRequestPollsAndReports) {
  Pages pages(32 << 20, kSlow);
  memsluice_request_status status;
  int fd = start(pages, &status);
  ASSERT_GE(fd, 0);
  Descriptor request(fd);
  EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  status = ended(fd);
  EXPECT_EQ(status.state, MEMSLUICE_REQUEST_DONE);
  EXPECT_EQ(status.moved_pages, pages.bytes() / kPageBytes);
  auto line = std::to_string(status.id) + " range pid:";
  EXPECT_NE(read_file("/proc/memsluice/requests").find(line), std::string::npos);
  EXPECT_TRUE(pages.intact());
}

TEST_F(Migrate, ACancelledRequestStopsAndKeepsWhatItMoved) {
  Pages pages(128 << 20, kSlow);
  memsluice_request_status status;
  int fd = start(pages, &status);
  ASSERT_GE(fd, 0);
  Descriptor request(fd);
  ASSERT_EQ(ioctl_on(fd, MEMSLUICE_IOC_REQUEST_CANCEL, nullptr), 0);
  status = ended(fd);
  EXPECT_EQ(status.state, MEMSLUICE_REQUEST_CANCELLED);
  EXPECT_EQ(status.error, -EINTR);
  EXPECT_EQ(pages.count_on(kFast), status.moved_pages);
  EXPECT_TRUE(pages.intact());
}

TEST_F(Migrate, ClosingTheDescriptorCancels) {
  Pages pages(128 << 20, kSlow);
  memsluice_request_status status;
  int fd = start(pages, &status);
  ASSERT_GE(fd, 0);
  close(fd);
  auto line = std::to_string(status.id) + " range pid:";
  EXPECT_TRUE(eventually([&] {
    auto text = read_file("/proc/memsluice/requests");
    auto at = text.find(line);
    return at != std::string::npos && text.find("cancelled", at) < text.find('\n', at);
  }));
  EXPECT_TRUE(pages.intact());
}

TEST_F(Migrate, ASignalStopsASynchronousRequest) {
  pid_t child = start_child([] {
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    sigaction(SIGALRM, &action, nullptr);
    Pages pages(128 << 20, kSlow);
    Descriptor self(open_pidfd(getpid()));
    for (int attempt = 0; attempt < 200; attempt++) {
      memsluice_request_status status;
      auto migrate = range_request(pages, attempt % 2 ? kSlow : kFast, &status);
      migrate.pidfd = self.get();
      ualarm(2000 + 1000 * static_cast<unsigned>(attempt % 50), 0);
      int error = device_ioctl(MEMSLUICE_IOC_MIGRATE, &migrate);
      if (error == -EINTR)
        return status.state == MEMSLUICE_REQUEST_CANCELLED && pages.intact() ? 0 : 2;
      if (error) return 3;
    }
    return 4;
  });
  EXPECT_EQ(wait_child(child), 0);
}

TEST_F(Migrate, AProcessMayExitInTheMiddle) {
  for (int i = 0; i < 5; i++) {
    pid_t child = start_ready_child([&](auto ready) {
      Pages pages(64 << 20, kSlow);
      ready();
      pause();
      return 0;
    });
    Descriptor pidfd(open_pidfd(child));
    auto status = sized<memsluice_request_status>();
    auto migrate = sized<memsluice_migrate>();
    migrate.kind = MEMSLUICE_MIGRATE_RANGE;
    migrate.flags = MEMSLUICE_MIGRATE_ASYNC;
    migrate.pidfd = pidfd.get();
    migrate.source_node = -1;
    migrate.target_node = kFast;
    migrate.length = uint64_t{1} << 47;
    int fd = device_ioctl(MEMSLUICE_IOC_MIGRATE, &migrate);
    ASSERT_GE(fd, 0);
    Descriptor request(fd);
    usleep(static_cast<useconds_t>(i) * 10000);
    kill(child, SIGKILL);
    EXPECT_EQ(wait_child(child), 128 + SIGKILL);
    status = ended(fd);
    EXPECT_TRUE(status.state == MEMSLUICE_REQUEST_FAILED || status.state == MEMSLUICE_REQUEST_DONE);
  }
}

TEST_F(Migrate, RefusesArgumentsThatMakeNoSense) {
  Pages pages(kPageBytes, kSlow);
  memsluice_request_status status;
  const auto good = range_request(pages, kFast, &status);
  struct {
    const char* what;
    std::function<void(memsluice_migrate*)> change;
    int error;
  } const cases[] = {
      {"unknown kind", [](auto* m) { m->kind = 3; }, -EINVAL},
      {"unknown flag", [](auto* m) { m->flags = 1U << 5; }, -EINVAL},
      {"no such node", [](auto* m) { m->target_node = 900; }, -ENODEV},
      {"node without memory", [](auto* m) { m->target_node = 5; }, -ENODEV},
      {"negative node", [](auto* m) { m->target_node = -1; }, -ENODEV},
      {"unaligned address", [](auto* m) { m->address += 8; }, -EINVAL},
      {"unaligned length", [](auto* m) { m->length = 100; }, -EINVAL},
      {"nothing", [](auto* m) { m->length = 0; }, -EINVAL},
      {"wraps", [](auto* m) { m->length = ~0ULL & ~0xfffULL; }, -EINVAL},
      {"results of a range", [](auto* m) { m->results = 8; }, -EINVAL},
      {"source node of a range", [](auto* m) { m->source_node = 1; }, -EINVAL},
      {"cgroup of a range", [](auto* m) { m->cgroup_id = 1; }, -EINVAL},
      {"too many addresses",
       [](auto* m) {
         m->kind = MEMSLUICE_MIGRATE_ADDRESSES;
         m->length = MEMSLUICE_ADDRESSES_MAX + 1;
       },
       -EINVAL},
      {"addresses nowhere",
       [](auto* m) {
         m->kind = MEMSLUICE_MIGRATE_ADDRESSES;
         m->address = 8;
         m->length = 1;
       },
       -EFAULT},
      {"status nowhere", [](auto* m) { m->status = 8; }, -EFAULT},
      {"structure too small", [](auto* m) { m->size = 8; }, -EINVAL},
      {"structure too large", [](auto* m) { m->size = 1U << 20; }, -E2BIG},
  };
  for (const auto& wrong : cases) {
    auto migrate = good;
    wrong.change(&migrate);
    EXPECT_EQ(run(&migrate), wrong.error) << wrong.what;
  }
  auto migrate = good;
  migrate.pidfd = -1;
  EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_MIGRATE, &migrate), -EBADF);
  EXPECT_EQ(device_ioctl(0xdead, &migrate), -ENOTTY);
}

TEST_F(Migrate, ALargerStructureIsReadWhenTheRestIsZero) {
  struct {
    memsluice_version version;
    uint64_t later[4];
  } longer = {};
  longer.version.size = sizeof(longer);
  EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_VERSION, &longer), 0);
  EXPECT_EQ(longer.version.abi_version, MEMSLUICE_ABI_VERSION);
  longer.later[3] = 1;
  EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_VERSION, &longer), -E2BIG);
}

}  // namespace
}  // namespace memsluice::test
