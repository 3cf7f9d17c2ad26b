// SPDX-License-Identifier: GPL-2.0
// What can happen to pages while they are moved: nothing is lost, nothing is torn.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "tests/vm/module/life.h"
#include "tests/vm/module/machine.h"
#include "tests/vm/module/requests.h"

namespace memsluice::test {
namespace {

using Events = RequestTest;

TEST_F(Events, PagesAreDroppedInTheMiddle) {
  Pages pages(8 * kMib, kSlow);
  Pages kept(8 * kMib, kSlow, Pages::Huge::kNever, 2);
  Life life(kept.data(), kept.bytes());
  {
    Meanwhile drop([&] {
      madvise(pages.data(), pages.bytes(), MADV_DONTNEED);
      for (size_t at = 0; at < pages.bytes(); at += kPageBytes) {
        if (pages.data()[at] || pages.data()[at + kPageBytes - 1]) ADD_FAILURE() << "not zero";
        pages.data()[at] = 1;
        pages.data()[at + kPageBytes - 1] = 1;
      }
    });
    for (int round = 0; round < 8; round++) {
      move(pages.data(), pages.bytes(), round % 2 ? kSlow : kFast);
      move(kept.data(), kept.bytes(), round % 2 ? kSlow : kFast);
    }
  }
  EXPECT_TRUE(life.intact());
}

TEST_F(Events, MappingsMoveAndGoInTheMiddle) {
  constexpr size_t kBytes = 2 * kMib;
  auto* home = static_cast<char*>(
      mmap(nullptr, 4 * kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(static_cast<void*>(home), MAP_FAILED);
  uint64_t torn = 0;
  {
    Meanwhile remap([&, number = uint8_t{0}]() mutable {
      number++;
      void* first = mmap(home, kBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      std::memset(first, number, kBytes);
      auto* moved = static_cast<char*>(
          mremap(first, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, home + 2 * kBytes));
      for (size_t at = 0; at < kBytes; at++) torn += static_cast<uint8_t>(moved[at]) != number;
      munmap(moved, kBytes);
    });
    for (int round = 0; round < 12 || remap.times() < 4; round++)
      move(home, 4 * kBytes, round % 2 ? kFast : kSlow);
  }
  EXPECT_EQ(torn, 0U);
  munmap(home, 4 * kBytes);
}

TEST_F(Events, ChildrenAreForkedInTheMiddle) {
  Pages pages(8 * kMib, kSlow);
  uint64_t bad = 0;
  {
    Meanwhile fork_often([&] { bad += in_child([&] { return pages.intact() ? 0 : 1; }) != 0; });
    for (int round = 0; round < 10 || fork_often.times() < 3; round++)
      move(pages.data(), pages.bytes(), round % 2 ? kSlow : kFast, kAll);
  }
  EXPECT_EQ(bad, 0U);
  EXPECT_TRUE(pages.intact());
}

TEST_F(Events, HugePagesSplitAndCollapseInTheMiddle) {
  Pages pages(4 * kHugeBytes, kSlow, Pages::Huge::kAlways);
  Life life(pages.data(), pages.bytes());
  {
    Meanwhile change([&] {
      // Another protection for a part splits the mapping; then both are made one again.
      mprotect(pages.data() + kHugeBytes / 2, kPageBytes, PROT_READ | PROT_WRITE | PROT_EXEC);
      madvise(pages.data(), pages.bytes(), MADV_COLD);
      mprotect(pages.data() + kHugeBytes / 2, kPageBytes, PROT_READ | PROT_WRITE);
      madvise(pages.data(), pages.bytes(), 25 /* MADV_COLLAPSE */);
    });
    for (int round = 0; round < 12 || change.times() < 2; round++)
      move(pages.data(), pages.bytes(), round % 2 ? kSlow : kFast);
  }
  EXPECT_TRUE(life.intact());
}

TEST_F(Events, TwoRequestsWantTheSamePages) {
  Pages pages(8 * kMib, kSlow);
  Life life(pages.data(), pages.bytes());
  {
    Meanwhile other([&] { move(pages.data(), pages.bytes(), kSlow); });
    for (int round = 0; round < 10; round++) move(pages.data(), pages.bytes(), kFast);
  }
  EXPECT_EQ(pages.count_on(kFast) + pages.count_on(kSlow), pages.bytes() / kPageBytes);
  EXPECT_TRUE(life.intact());
}

TEST_F(Events, MemoryIsWrittenFromOutside) {
  Pages pages(4 * kMib, kSlow);
  Descriptor memory(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  std::vector<char> buffer(pages.bytes());
  uint64_t bad = 0, number = 0;
  {
    Meanwhile write_over([&] {
      number++;
      std::memset(buffer.data(), static_cast<int>(number), buffer.size());
      iovec here = {buffer.data(), buffer.size()}, there = {pages.data(), pages.bytes()};
      const auto all = static_cast<ssize_t>(buffer.size());
      const auto at = static_cast<off_t>(pages.address());
      if (number % 2)
        bad += process_vm_writev(getpid(), &here, 1, &there, 1, 0) != all;
      else
        bad += pwrite(memory.get(), buffer.data(), buffer.size(), at) != all;
      bad += std::memcmp(pages.data(), buffer.data(), buffer.size()) != 0;
    });
    for (int round = 0; round < 10 || write_over.times() < 4; round++)
      move(pages.data(), pages.bytes(), round % 2 ? kSlow : kFast);
  }
  EXPECT_EQ(bad, 0U);
}

TEST_F(Events, ATracerPokes) {
  Pages pages(kMib, kSlow);
  pid_t child = start_child([&] {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    return 0;
  });
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  Descriptor pidfd(open_pidfd(child));
  uint64_t bad = 0;
  bool stop = false;
  std::thread mover([&] {
    for (int round = 0; !stop; round++) {
      auto status = sized<memsluice_request_status>();
      auto migrate = range_request(pages, round % 2 ? kSlow : kFast, &status);
      migrate.flags = kAll;
      migrate.pidfd = pidfd.get();
      EXPECT_EQ(device_ioctl(MEMSLUICE_IOC_MIGRATE, &migrate), 0);
    }
  });
  for (long value = 1; value <= 2000; value++) {
    char* at = pages.data() + value % 256 * kPageBytes;
    ptrace(PTRACE_POKEDATA, child, at, value);
    bad += ptrace(PTRACE_PEEKDATA, child, at, nullptr) != value;
  }
  stop = true;
  mover.join();
  EXPECT_EQ(bad, 0U);
  EXPECT_TRUE(pages.intact());  // ours: the child has its own copies
  kill(child, SIGKILL);
  wait_child(child);
}

TEST_F(Events, TheCpusetChangesInTheMiddle) {
  Cgroup cgroup("cpuset-events");
  LivingProcess process(cgroup, 16 * kMib);
  Descriptor pidfd(open_pidfd(process.pid()));
  {
    Meanwhile change(
        [&, fast = false]() mutable { cgroup.write("cpuset.mems", (fast = !fast) ? "0" : "0-1"); });
    for (int round = 0; round < 10; round++) {
      memsluice_request_status status;
      // Refused as a whole where the cpuset forbids the target at that moment.
      int error = move_process(pidfd.get(), round % 2 ? kSlow : kFast, &status);
      EXPECT_TRUE(!error || error == -EACCES) << error;
    }
  }
  EXPECT_TRUE(process.ended_intact());
}

TEST_F(Events, CompactionAndBalancingMoveToo) {
  Pages pages(16 * kMib, kSlow);
  Pages huge(4 * kHugeBytes, kSlow, Pages::Huge::kAlways, 3);
  Life life(pages.data(), pages.bytes());
  const auto balancing = read_file("/proc/sys/kernel/numa_balancing");
  write_file("/proc/sys/kernel/numa_balancing", "3");
  {
    Meanwhile compact([] {
      write_file("/proc/sys/vm/compact_memory", "1");
      usleep(1000);
    });
    for (int round = 0; round < 10; round++) {
      move(pages.data(), pages.bytes(), round % 2 ? kSlow : kFast);
      move(huge.data(), huge.bytes(), round % 2 ? kSlow : kFast);
    }
  }
  write_file("/proc/sys/kernel/numa_balancing", balancing);
  EXPECT_TRUE(life.intact());
  EXPECT_TRUE(huge.intact());
}

// DAMON migrates what lies in a node's memory, again and again, until it goes out of scope.
class Damon {
 public:
  Damon(int from, int to) {
    // One watcher of physical memory keeps others out.
    if (!statistics_.empty()) write_file(kStatistics, "N");
    set("nr_kdamonds", "1");
    set("0/contexts/nr_contexts", "1");
    const std::string context = "0/contexts/0/";
    set(context + "operations", "paddr");
    set(context + "monitoring_attrs/intervals/sample_us", "1000");
    set(context + "monitoring_attrs/intervals/aggr_us", "10000");
    set(context + "targets/nr_targets", "1");
    set(context + "targets/0/regions/nr_regions", "1");
    const auto [start, end] = memory_of(from);
    set(context + "targets/0/regions/0/start", std::to_string(start));
    set(context + "targets/0/regions/0/end", std::to_string(end));
    set(context + "schemes/nr_schemes", "1");
    const std::string scheme = context + "schemes/0/";
    set(scheme + "action", "migrate_cold");
    set(scheme + "target_nid", std::to_string(to));
    set(scheme + "access_pattern/sz/max", "1099511627776");
    set(scheme + "access_pattern/nr_accesses/max", "1000");
    set(scheme + "access_pattern/age/max", "1000000");
    set("0/state", "on");
  }
  ~Damon() {
    set("0/state", "off");
    set("nr_kdamonds", "0");
    if (!statistics_.empty()) write_file(kStatistics, statistics_);
  }
  Damon(const Damon&) = delete;
  Damon& operator=(const Damon&) = delete;

  static bool is_there() { return access(kFolder, F_OK) == 0; }
  // Pages that it has migrated.
  static uint64_t moved() {
    write_file(std::string(kFolder) + "0/state", "update_schemes_stats");
    return std::stoull(read_file(std::string(kFolder) + "0/contexts/0/schemes/0/stats/sz_applied"));
  }

 private:
  static constexpr char kFolder[] = "/sys/kernel/mm/damon/admin/kdamonds/";
  static constexpr char kStatistics[] = "/sys/module/damon_stat/parameters/enabled";

  static void set(const std::string& file, const std::string& value) {
    write_file(kFolder + file, value);
  }

  // Physical addresses, from the numbers of its blocks.
  static std::pair<uint64_t, uint64_t> memory_of(int node) {
    const uint64_t block_bytes =
        std::stoull(read_file("/sys/devices/system/memory/block_size_bytes"), nullptr, 16);
    uint64_t first = UINT64_MAX, last = 0;
    for (const std::string& state : memory_blocks(node)) {
      const uint64_t number = std::stoull(state.substr(state.rfind("memory") + 6));
      first = std::min(first, number);
      last = std::max(last, number);
    }
    return {first * block_bytes, (last + 1) * block_bytes};
  }

  std::string statistics_ = read_file(kStatistics);  // whether they were on; empty: there are none
};

TEST_F(Events, DamonMovesToo) {
  if (!Damon::is_there()) GTEST_SKIP() << "this kernel has no DAMON";
  Pages pages(16 * kMib, kSlow);
  Pages huge(4 * kHugeBytes, kSlow, Pages::Huge::kAlways, 3);
  Life life(pages.data(), pages.bytes());
  {
    Damon damon(kFast, kSlow);
    for (int round = 0; round < 200 && (round < 12 || !Damon::moved()); round++) {
      move(pages.data(), pages.bytes(), kFast);
      move(huge.data(), huge.bytes(), kFast);
    }
    EXPECT_GT(Damon::moved(), 0U);
  }
  EXPECT_TRUE(life.intact());
  EXPECT_TRUE(huge.intact());
}

// What the kernel counts for a cgroup and for the host is after moves what it was before.
TEST_F(Events, CountersAreWhatTheyWere) {
  Cgroup cgroup("census");
  pid_t child = start_ready_child([&](auto ready) {
    cgroup.enter(getpid());
    Pages base(8 * kMib, kSlow);
    Pages huge(4 * kHugeBytes, kSlow, Pages::Huge::kAlways, 2);
    Pages locked(kMib, kSlow, Pages::Huge::kNever, 3);
    if (mlock(locked.data(), locked.bytes())) return 2;
    auto* shared =
        mmap(nullptr, 2 * kMib, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    std::memset(shared, 1, 2 * kMib);
    ready();
    while (access("/tmp/census-done", F_OK)) usleep(20000);
    return base.intact() && huge.intact() && locked.intact() ? 0 : 1;
  });
  Descriptor pidfd(open_pidfd(child));
  memsluice_request_status status;
  // Where it has to be in the end, too; what the kernel holds back per CPU is given back.
  ASSERT_EQ(move_process(pidfd.get(), kSlow, &status), 0);
  auto census = [&] {
    write_file("/proc/sys/vm/stat_refresh", "1");
    std::ostringstream counts;
    for (const char* name : {"anon ", "shmem ", "anon_thp ", "unevictable ", "inactive_anon ",
                             "active_anon ", "file_mapped "})
      counts << name << field(cgroup.path() + "/memory.stat", name) << "\n";
    for (const char* name :
         {"nr_mlock ", "nr_shmem ", "nr_anon_transparent_hugepages ", "nr_unevictable "})
      counts << name << field("/proc/vmstat", name) << "\n";
    counts << "on slow "
           << field("/sys/devices/system/node/node1/meminfo", "Node 1 AnonHugePages:");
    return counts.str();
  };
  auto settled = [&] {
    std::string last = census(), now;
    for (; (usleep(2500000), now = census()) != last; last = now) {
    }
    return now;
  };
  const std::string before = settled();
  const uint64_t available_before = field("/proc/meminfo", "MemAvailable:");
  for (int round = 0; round < 20; round++)
    EXPECT_EQ(move_process(pidfd.get(), round % 2 ? kSlow : kFast, &status), 0);
  EXPECT_TRUE(eventually([&] { return census() == before; }, 30)) << before << "\n" << census();
  // A page in fifty that is lost would be 8 MiB; nothing else in the guest needs as much.
  EXPECT_TRUE(eventually([&] {
    return field("/proc/meminfo", "MemAvailable:") + 8192 > available_before;
  })) << available_before
      << " KiB before";
  touch("/tmp/census-done");
  EXPECT_EQ(wait_child(child), 0);
  unlink("/tmp/census-done");
  EXPECT_TRUE(eventually(
      [&] { return std::stoull(read_file(cgroup.path() + "/memory.current")) < kMib; }, 30));
}

TEST_F(Events, MemoryOfEitherSideIsTakenAway) {
  // With pools that are full: they must let go.
  Pages pages(32 * kMib, kSlow);
  Life life(pages.data(), pages.bytes());
  int cycled = 0;
  {
    Meanwhile moves([&] {
      move(pages.data(), pages.bytes(), kFast);
      move(pages.data(), pages.bytes(), kSlow);
    });
    for (int round = 0; round < 2 || moves.times() < 2; round++)
      cycled += cycle_memory(kSlow) + cycle_memory(kFast);
  }
  EXPECT_GT(cycled, 0);
  EXPECT_TRUE(life.intact());
}

TEST_F(Events, CpusGoAndComeInTheMiddle) {
  Pages pages(8 * kMib, kSlow);
  Life life(pages.data(), pages.bytes());
  {
    Meanwhile hotplug([] {
      write_file("/sys/devices/system/cpu/cpu1/online", "0");
      write_file("/sys/devices/system/cpu/cpu1/online", "1");
    });
    for (int round = 0; round < 10 || hotplug.times() < 2; round++)
      move(pages.data(), pages.bytes(), round % 2 ? kSlow : kFast);
  }
  EXPECT_TRUE(life.intact());
}

TEST_F(Events, AFrozenProcessIsMovedAndThaws) {
  Cgroup cgroup("frozen");
  LivingProcess process(cgroup, 8 * kMib);
  Descriptor pidfd(open_pidfd(process.pid()));
  {
    Meanwhile freeze([&, frozen = false]() mutable {
      cgroup.write("cgroup.freeze", (frozen = !frozen) ? "1" : "0");
      usleep(5000);
    });
    for (int round = 0; round < 10; round++) {
      memsluice_request_status status;
      EXPECT_EQ(move_process(pidfd.get(), round % 2 ? kSlow : kFast, &status), 0);
      EXPECT_GT(status.moved_pages, 0U);
    }
  }
  cgroup.write("cgroup.freeze", "0");
  EXPECT_TRUE(process.ended_intact());
}

TEST_F(Events, RealTimeWritersWaitAndGoOn) {
  Pages pages(4 * kMib, kSlow);
  pid_t child = start_ready_child([&](auto ready) {
    sched_param priority = {.sched_priority = 50};
    if (sched_setscheduler(0, SCHED_RR, &priority)) return 2;
    Pages own(4 * kMib, kSlow);
    Life life(own.data(), own.bytes());
    ready();
    for (int i = 0; i < 200; i++) usleep(10000);
    return life.intact() ? 0 : 1;
  });
  Descriptor pidfd(open_pidfd(child));
  bool gone = false;
  for (int round = 0; !gone; round++) {
    memsluice_request_status status;
    gone = move_process(pidfd.get(), round % 2 ? kSlow : kFast, &status) == -ESRCH ||
           status.seen_pages == 0;
  }
  EXPECT_EQ(wait_child(child), 0);
}

TEST_F(Events, ARequestIsPassedOnAndOutlivesWhoBeganIt) {
  Pages pages(32 * kMib, kSlow);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
  Descriptor here(ends[0]), there(ends[1]);
  pid_t child = start_child([&] {
    memsluice_request_status status;
    auto migrate = range_request(pages, kFast, &status);
    migrate.flags = MEMSLUICE_MIGRATE_ASYNC | kAll;
    migrate.pidfd = self_.get();
    int fd = device_ioctl(MEMSLUICE_IOC_MIGRATE, &migrate);
    if (fd < 0) return 1;
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
    iovec vector = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
    return sendmsg(there.get(), &message, 0) == 1 ? 0 : 2;
  });
  char byte, control[CMSG_SPACE(sizeof(int))] = {};
  iovec vector = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ASSERT_EQ(recvmsg(here.get(), &message, MSG_CMSG_CLOEXEC), 1);
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
  Descriptor request(fd);
  EXPECT_EQ(wait_child(child), 0);
  EXPECT_EQ(ended(request.get()).state, MEMSLUICE_REQUEST_DONE);
  EXPECT_TRUE(pages.intact());
}

uint64_t migration_count(const std::string& name) {
  auto text = read_file("/proc/memsluice/migration");
  auto at = text.find("\n" + name + " ");
  return at == std::string::npos ? 0 : std::stoull(text.substr(at + name.size() + 2));
}

// A column of a node's pool of destinations.
uint64_t pool_count(int node, const std::string& what) {
  std::istringstream words(read_file("/proc/memsluice/migration"));
  for (std::string word, last, number; words >> word; last = word) {
    if (last == "pool") number = word;
    if (last == what && number == std::to_string(node)) return std::stoull(word);
  }
  return 0;
}

TEST_F(Events, WhatAnEngineFailsTheCpuCopies) {
  TestEngine engine;
  TestEngine::set("fail_every", "3");
  Pages pages(4 * kMib, kSlow);
  Pages huge(4 * kHugeBytes, kSlow, Pages::Huge::kAlways, 2);
  const uint64_t before = migration_count("fell_back_folios");
  Life life(pages.data(), pages.bytes());
  for (int node : {kFast, kSlow, kFast}) {
    EXPECT_EQ(refused(move(pages.data(), pages.bytes(), node)), 0U);
    EXPECT_EQ(refused(move(huge.data(), huge.bytes(), node)), 0U);
  }
  EXPECT_TRUE(life.intact());
  EXPECT_TRUE(huge.intact());
  // A third of all, but for the few that the kernel's migration had to move.
  EXPECT_GE(migration_count("fell_back_folios"), before + 900);
  EXPECT_GT(TestEngine::get("largest"), 1U);  // batches, not single folios
}

TEST_F(Events, AMappingThatFailsAfterTheCopyLeavesThePageWhole) {
  TestEngine engine;
  TestEngine::set("hold_every", "16");
  Pages pages(kMib, kSlow);
  Life life(pages.data(), pages.bytes());
  auto status = move(pages.data(), pages.bytes(), kFast);
  const uint64_t held = status.refused_pages[MEMSLUICE_REFUSED_PINNED];
  EXPECT_GE(held, 12U);
  EXPECT_LE(held, 16U);
  EXPECT_EQ(status.moved_pages, 256 - held);
  TestEngine::set("hold_every", "0");
  TestEngine::set("release", "1");
  EXPECT_EQ(refused(move(pages.data(), pages.bytes(), kFast)), 0U);
  EXPECT_EQ(pages.count_on(kFast), 256U);
  EXPECT_TRUE(life.intact());
}

TEST_F(Events, EnginesComeAndGoInTheMiddle) {
  Pages pages(4 * kMib, kSlow);
  Life life(pages.data(), pages.bytes());
  {
    Meanwhile reload([] { TestEngine engine; });
    for (int round = 0; round < 10 || reload.times() < 3; round++)
      move(pages.data(), pages.bytes(), round % 2 ? kSlow : kFast);
  }
  EXPECT_TRUE(life.intact());
}

TEST_F(Events, ThePoolServesWhoComesAgainAndShrinksAfter) {
  const auto bound = read_file("/sys/kernel/memsluice/pool_mib");
  Pages pages(4 * kMib, kSlow);
  auto pool_pages = [](int node) { return pool_count(node, "pages"); };
  EXPECT_TRUE(eventually([&] {
    move(pages.data(), pages.bytes(), kFast);
    move(pages.data(), pages.bytes(), kSlow);
    return pool_pages(kSlow) > 0;
  }));
  EXPECT_TRUE(eventually([&] { return pool_pages(kSlow) == 0 && pool_pages(kFast) == 0; }));
  write_file("/sys/kernel/memsluice/pool_mib", "0");
  move(pages.data(), pages.bytes(), kFast);
  EXPECT_EQ(pool_pages(kFast), 0U);
  write_file("/sys/kernel/memsluice/pool_mib", bound);
  EXPECT_TRUE(pages.intact());
}

// Free folios must not be counted as anybody's, nor be what they were before.
TEST_F(Events, WhatWasMovedAwayFromIsMovedTo) {
  const std::string huge_pages = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/";
  auto anonymous = [&] { return std::stoul(read_file(huge_pages + "nr_anon")); };
  auto reused = [] { return pool_count(kSlow, "reused") + pool_count(kFast, "reused"); };
  const uint64_t anonymous_before = anonymous(), reused_before = reused();
  {
    Pages pages(2 * kMib, kSlow);
    Pages huge(4 * kHugeBytes, kSlow, Pages::Huge::kAlways, 3);
    Life life(pages.data(), pages.bytes());
    for (int round = 0; round < 12; round++) {
      const int target = round % 2 ? kSlow : kFast;
      move(pages.data(), pages.bytes(), target);
      EXPECT_EQ(move(huge.data(), huge.bytes(), target).moved_pages, huge.bytes() / kPageBytes);
      EXPECT_TRUE(huge.intact());
    }
    EXPECT_TRUE(life.intact());
    EXPECT_GE(reused(), reused_before + 512);
    EXPECT_GE(anonymous(), anonymous_before + 4);
  }
  // What was anonymous becomes shared memory, and the other way round.
  const size_t bytes = 2 * kMib;
  auto* shared = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(shared), MAP_FAILED);
  std::memset(shared, 0x5a, bytes);
  Pages pages(bytes, kSlow, Pages::Huge::kNever, 5);
  for (int round = 0; round < 6; round++) {
    move(shared, bytes, round % 2 ? kSlow : kFast, MEMSLUICE_MIGRATE_ALL_MAPPINGS);
    move(pages.data(), bytes, round % 2 ? kSlow : kFast);
  }
  EXPECT_EQ(std::count(shared, shared + bytes, 0x5a), static_cast<ptrdiff_t>(bytes));
  EXPECT_TRUE(pages.intact());
  munmap(shared, bytes);
  EXPECT_TRUE(eventually([&] { return anonymous() == anonymous_before; })) << anonymous();
}

TEST_F(Events, TheKernelsOwnPathIsThereForWhoAsks) {
  Pages pages(kMib, kSlow);
  const uint64_t before = migration_count("moved_by_kernel request");
  EXPECT_EQ(move(pages.data(), pages.bytes(), kFast, MEMSLUICE_MIGRATE_IN_TREE).moved_pages, 256U);
  EXPECT_EQ(migration_count("moved_by_kernel request"), before + 256);
  EXPECT_TRUE(pages.intact());
}

TEST_F(Events, NoBatchIsLargerThanTheStallAllows) {
  const std::string tracing = "/sys/kernel/tracing/";
  const std::string planned = tracing + "events/memsluice/memsluice_batch_planned/enable";
  write_file("/sys/kernel/memsluice/batch_stall_us", "10");
  { Descriptor emptied(open((tracing + "trace").c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)); }
  write_file(planned, "1");
  const uint64_t before = migration_count("batches");
  Pages pages(kMib, kSlow);
  EXPECT_EQ(move(pages.data(), pages.bytes(), kFast).moved_pages, 256U);
  write_file(planned, "0");
  int batches = 0;
  std::istringstream lines(read_file(tracing + "trace"));
  for (std::string line; std::getline(lines, line);) {
    unsigned folios = 0;
    unsigned long bytes = 0, expected_ns = 0, bound_ns = 0;
    const size_t at = line.find(" folios=");
    if (at == std::string::npos ||
        std::sscanf(line.c_str() + at, " folios=%u bytes=%lu expected_ns=%lu bound_ns=%lu", &folios,
                    &bytes, &expected_ns, &bound_ns) != 4)
      continue;
    batches++;
    EXPECT_EQ(bound_ns, 10'000U * 7 / 8);
    EXPECT_TRUE(folios <= 1 || expected_ns <= bound_ns) << line;
  }
  EXPECT_GE(batches, 256 / 8);
  // In 10 us this emulated machine moves one page, or a few.
  EXPECT_GT(migration_count("batches"), before + 256 / 8);
  write_file("/sys/kernel/memsluice/batch_stall_us", "5000");
}

}  // namespace
}  // namespace memsluice::test
