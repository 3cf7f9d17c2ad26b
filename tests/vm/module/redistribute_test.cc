// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "tests/vm/module/channels.h"
#include "tests/vm/module/life.h"
#include "tests/vm/module/machine.h"
#include "tests/vm/module/requests.h"

namespace memsluice::test {
namespace {

const ChannelList kTwoThree = {{2, 1}, {3, 1}};

memsluice_migrate request(const Cgroup& cgroup, memsluice_request_status* status) {
  auto migrate = sized<memsluice_migrate>();
  *status = sized<memsluice_request_status>();
  migrate.kind = MEMSLUICE_MIGRATE_TENANT_PLACED;
  migrate.pidfd = migrate.source_node = migrate.target_node = -1;
  migrate.cgroup_id = cgroup.id();
  migrate.status = reinterpret_cast<uint64_t>(status);
  return migrate;
}

int try_to(memsluice_migrate migrate) {
  return device_ioctl(MEMSLUICE_IOC_MIGRATE, &migrate);
}

double now_s() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

class Redistribute : public PlacedTest {
 protected:
  void SetUp() override {
    PlacedTest::SetUp();
    // It moves pages to their place as well: what it does is not to be taken for ours.
    write_file(kBalancing, "0");
  }
  void TearDown() override {
    write_file(kBalancing, "1");
    EXPECT_TRUE(eventually([] { return isolated_pages() == 0; }, 20)) << isolated_pages();
  }

  memsluice_request_status redistribute(uint32_t flags = 0, uint32_t mib_per_s = 0) {
    memsluice_request_status status;
    auto migrate = request(cgroup_, &status);
    migrate.flags = flags;
    migrate.mib_per_s = mib_per_s;
    EXPECT_EQ(try_to(migrate), 0);
    EXPECT_EQ(status.state, MEMSLUICE_REQUEST_DONE);
    expect_all_accounted(status);
    return status;
  }

  int start(uint32_t mib_per_s) {
    memsluice_request_status status;
    auto migrate = request(cgroup_, &status);
    migrate.flags = MEMSLUICE_MIGRATE_ASYNC;
    migrate.mib_per_s = mib_per_s;
    return try_to(migrate);
  }

  // Marks all that is misplaced of a process that the last scan may not have met yet.
  memsluice_request_status mark(const Plain& plain) {
    memsluice_request_status status;
    EXPECT_TRUE(eventually([&] {
      status = redistribute(MEMSLUICE_MIGRATE_ON_TOUCH);
      return status.seen_pages >= plain.bytes() / kPageBytes;
    }));
    return status;
  }

  static constexpr char kBalancing[] = "/proc/sys/kernel/numa_balancing";
};

// What moves lies exactly where it would lie had it been allocated there.
TEST_F(Redistribute, EachPageComesToWhereItsOffsetLies) {
  for (const int advice : {MADV_NOHUGEPAGE, MADV_HUGEPAGE})
    for (const uint32_t order : {0U, 4U, 9U}) {
      ASSERT_EQ(set(placement(cgroup_, {{1, 1}}, order)), 0);
      inside([&] {
        Plain plain(24 * kMib, advice);
        fill(plain.data(), plain.bytes(), 5);
        ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne, order)), 0);
        const auto status = redistribute();
        EXPECT_GE(status.moved_pages, plain.bytes() / kPageBytes / 3);
        const auto moved = nodes_of(plain.data(), plain.bytes());
        EXPECT_TRUE(is_filled(plain.data(), plain.bytes(), 5));
        EXPECT_EQ(redistribute().moved_pages, 0u) << "it is all there";
        ASSERT_EQ(madvise(plain.data(), plain.bytes(), MADV_DONTNEED), 0);
        plain.touch();
        EXPECT_EQ(moved, nodes_of(plain.data(), plain.bytes())) << advice << " " << order;
      });
    }
}

TEST_F(Redistribute, HugePagesStayWhole) {
  ASSERT_EQ(set(placement(cgroup_, {{1, 1}})), 0);
  inside([&] {
    Plain plain(72 * kMib, MADV_HUGEPAGE);
    Life life(plain.data(), plain.bytes());
    const auto split = field("/proc/vmstat", "thp_split_page ");
    ASSERT_EQ(set(placement(cgroup_, kTwoThree)), 0);
    redistribute();
    EXPECT_EQ(field("/proc/vmstat", "thp_split_page "), split);
    expect_by_weight(plain.where(), 2 * kGranulePages, kTwoThree);
    EXPECT_TRUE(life.intact());
  });
}

TEST_F(Redistribute, SharedMemoryMovesMappedOrNot) {
  for (const uint32_t order : {0U, 9U}) {
    ASSERT_EQ(set(placement(cgroup_, {{1, 1}}, order)), 0);
    inside([&] {
      Descriptor memory(memfd_create("moved", MFD_CLOEXEC));
      ASSERT_EQ(ftruncate(memory.get(), 48 * kMib), 0);
      {
        Mapping mapped(48 * kMib, MAP_SHARED, memory.get());
        fill(mapped.data(), mapped.bytes(), 7);
      }
      Mapping half(24 * kMib, MAP_SHARED, memory.get());
      Mapping again(12 * kMib, MAP_SHARED, memory.get());
      ASSERT_TRUE(is_filled(again.data(), again.bytes(), 7));
      ASSERT_TRUE(is_filled(half.data(), half.bytes(), 7));
      ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne, order)), 0);
      redistribute();
      Mapping all(48 * kMib, MAP_SHARED, memory.get());
      EXPECT_TRUE(is_filled(all.data(), all.bytes(), 7));
      const auto moved = nodes_of(all.data(), all.bytes());
      ASSERT_EQ(fallocate(memory.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 48 * kMib),
                0);
      fill(all.data(), all.bytes(), 8);
      EXPECT_EQ(moved, nodes_of(all.data(), all.bytes()));
    });
  }
}

// Read from swap and unmapped again: in the swap cache, and mapped by nobody.
TEST_F(Redistribute, TheSwapCacheMoves) {
  Swap swap;
  ASSERT_EQ(set(placement(cgroup_, {{1, 1}}, 0)), 0);
  inside([&] {
    Plain plain(12 * kMib);
    fill(plain.data(), plain.bytes(), 3);
    ASSERT_EQ(madvise(plain.data(), plain.bytes(), MADV_PAGEOUT), 0);
    ASSERT_TRUE(is_filled(plain.data(), plain.bytes() / 2, 3));
    ASSERT_EQ(set(placement(cgroup_, kTwoThree, 0)), 0);
    redistribute();
    ASSERT_TRUE(is_filled(plain.data(), plain.bytes(), 3));
    redistribute();
    expect_by_weight(plain.where(), 64, kTwoThree);
    EXPECT_TRUE(is_filled(plain.data(), plain.bytes(), 3));
  });
}

TEST_F(Redistribute, PoliciesThatAreSetGoBeforeIt) {
  const unsigned long node_1 = 1UL << 1;
  const size_t pages = 4 * kMib / kPageBytes;
  ASSERT_EQ(set(placement(cgroup_, {{3, 1}})), 0);
  inside([&] {
    Plain bound(4 * kMib), free(4 * kMib);
    ASSERT_EQ(syscall(SYS_mbind, bound.data(), bound.bytes(), MPOL_BIND, &node_1, 64UL, 0), 0);
    bound.touch();
    free.touch();
    Descriptor memory(memfd_create("bound", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(memory.get(), 4 * kMib), 0);
    Mapping shared(4 * kMib, MAP_SHARED, memory.get());
    ASSERT_EQ(syscall(SYS_mbind, shared.data(), shared.bytes(), MPOL_BIND, &node_1, 64UL, 0), 0);
    fill(shared.data(), shared.bytes(), 1);
    ASSERT_EQ(set(placement(cgroup_, {{2, 1}})), 0);
    EXPECT_EQ(redistribute().refused_pages[MEMSLUICE_REFUSED_POLICY], 2 * pages);
    EXPECT_EQ(bound.where(), (Counts{{1, pages}}));
    EXPECT_EQ(counts(shared.data(), shared.bytes()), (Counts{{1, pages}}));
    EXPECT_EQ(free.where(), (Counts{{2, pages}}));
    // One of the whole process.
    ASSERT_EQ(syscall(SYS_set_mempolicy, MPOL_PREFERRED, &node_1, 64UL), 0);
    ASSERT_EQ(set(placement(cgroup_, {{3, 1}})), 0);
    EXPECT_GE(redistribute().refused_pages[MEMSLUICE_REFUSED_POLICY], 3 * pages);
    EXPECT_EQ(free.where(), (Counts{{2, pages}}));
  });
}

TEST_F(Redistribute, ACpusetGoesBeforeIt) {
  inside([&] {
    Plain plain(4 * kMib);
    plain.touch();
    cgroup_.write("cpuset.mems", "0,2");
    ASSERT_EQ(set(placement(cgroup_, {{3, 1}})), 0);
    EXPECT_GE(redistribute().refused_pages[MEMSLUICE_REFUSED_NOT_ALLOWED], 1024u);
    ASSERT_EQ(set(placement(cgroup_, {{2, 1}})), 0);
    EXPECT_EQ(redistribute().refused_pages[MEMSLUICE_REFUSED_NOT_ALLOWED], 0u);
    EXPECT_EQ(plain.where(), (Counts{{2, 1024}}));
  });
}

TEST_F(Redistribute, WhatIsOfATenantBelowStays) {
  cgroup_.write("cgroup.subtree_control", "+memory");
  Cgroup tenant("tenant", cgroup_.path()), plain_below("below", cgroup_.path());
  ASSERT_EQ(set_tenant(tenant, policy_off()), 0);
  ASSERT_EQ(set(placement(cgroup_, {{2, 1}})), 0);
  ASSERT_EQ(set(placement(tenant, {{1, 1}})), 0);
  inside(tenant, [&] {
    Plain first(4 * kMib);
    first.touch();
    ASSERT_EQ(set(placement(cgroup_, {{3, 1}})), 0);
    redistribute();
    EXPECT_EQ(first.where(), (Counts{{1, 1024}}));
  });
  inside(plain_below, [&] {
    Plain first(4 * kMib);
    first.touch();
    EXPECT_EQ(first.where(), (Counts{{3, 1024}}));
    ASSERT_EQ(set(placement(cgroup_, {{2, 1}})), 0);
    redistribute();
    EXPECT_EQ(first.where(), (Counts{{2, 1024}}));
  });
}

TEST_F(Redistribute, OnlyWhatIsOnOneNode) {
  inside([&] {
    ASSERT_EQ(set(placement(cgroup_, {{1, 1}})), 0);
    Plain first(4 * kMib), second(4 * kMib);
    first.touch();
    ASSERT_EQ(set(placement(cgroup_, {{2, 1}})), 0);
    second.touch();
    ASSERT_EQ(set(placement(cgroup_, {{3, 1}})), 0);
    memsluice_request_status status;
    auto migrate = request(cgroup_, &status);
    migrate.source_node = 1;
    ASSERT_EQ(try_to(migrate), 0);
    EXPECT_EQ(first.where(), (Counts{{3, 1024}}));
    EXPECT_EQ(second.where(), (Counts{{2, 1024}}));
  });
}

// Full channels: the tenant's other one, and nobody is reclaimed or killed for it.
TEST_F(Redistribute, FullChannelsTakeNoMore) {
  Cgroup other("other");
  const auto killed = field("/proc/vmstat", "oom_kill");
  ASSERT_EQ(set_tenant(other, policy_off()), 0);
  ASSERT_EQ(set(placement(other, {{3, 1}})), 0);
  const pid_t neighbour = start_ready_child([&](auto ready) {
    other.enter(getpid());
    Plain plain(160 * kMib);
    plain.touch();
    ready();
    pause();
    return 0;
  });
  inside([&] {
    Plain plain(200 * kMib);
    plain.touch();
    ASSERT_EQ(set(placement(cgroup_, {{3, 1}})), 0);
    const auto scanned = field("/proc/vmstat", "pgscan_direct ");
    auto status = redistribute();
    auto where = plain.where();
    EXPECT_GT(where[3], 40 * 256u);
    EXPECT_GE(status.refused_pages[MEMSLUICE_REFUSED_NO_MEMORY], where[kHome]);
    ASSERT_EQ(set(placement(cgroup_, {{3, 1}, {2, 1}, {1, 0}})), 0);
    redistribute();
    where = plain.where();
    EXPECT_EQ(where[kHome], 0u);
    EXPECT_GE(where[2], 100 * 256u);
    EXPECT_EQ(field("/proc/vmstat", "pgscan_direct "), scanned);
  });
  kill(neighbour, SIGKILL);
  wait_child(neighbour);
  EXPECT_EQ(field("/proc/vmstat", "oom_kill"), killed);
}

TEST_F(Redistribute, IsNoFasterThanItsRate) {
  ASSERT_EQ(set(placement(cgroup_, {{1, 1}})), 0);
  inside([&] {
    Plain plain(16 * kMib);
    plain.touch();
    ASSERT_EQ(set(placement(cgroup_, {{2, 1}})), 0);
    const double begun = now_s();
    redistribute(0, 8);
    EXPECT_GE(now_s() - begun, 1.0) << "a machine can only be slower";
    EXPECT_EQ(plain.where(), (Counts{{2, 4096}}));
  });
}

TEST_F(Redistribute, CanBeCancelledAndReversed) {
  ASSERT_EQ(set(placement(cgroup_, {{1, 1}})), 0);
  inside([&] {
    Plain plain(48 * kMib);
    fill(plain.data(), plain.bytes(), 9);
    ASSERT_EQ(set(placement(cgroup_, {{2, 1}})), 0);
    Descriptor slow(start(4));
    ASSERT_GE(slow.get(), 0);
    EXPECT_TRUE(eventually([&] { return plain.where()[2] > 0; }));
    ASSERT_EQ(ioctl_on(slow.get(), MEMSLUICE_IOC_REQUEST_CANCEL, nullptr), 0);
    auto status = ended(slow.get());
    EXPECT_EQ(status.state, MEMSLUICE_REQUEST_CANCELLED);
    EXPECT_GT(plain.where()[1], 0u);
    // Another placement while a request runs: the rest goes by that.
    Descriptor turned(start(64));
    ASSERT_EQ(set(placement(cgroup_, {{1, 1}})), 0);
    EXPECT_EQ(ended(turned.get()).state, MEMSLUICE_REQUEST_DONE);
    redistribute();
    EXPECT_EQ(plain.where(), (Counts{{1, plain.bytes() / kPageBytes}}));
    EXPECT_TRUE(is_filled(plain.data(), plain.bytes(), 9));
  });
}

TEST_F(Redistribute, OnTouchMovesWhatIsTouched) {
  for (const int advice : {MADV_NOHUGEPAGE, MADV_HUGEPAGE}) {
    ASSERT_EQ(set(placement(cgroup_, {{1, 1}})), 0);
    inside([&] {
      Plain plain(24 * kMib, advice);
      fill(plain.data(), plain.bytes(), 4);
      ASSERT_EQ(set(placement(cgroup_, {{2, 1}})), 0);
      const auto status = mark(plain);
      const size_t pages = plain.bytes() / kPageBytes, half = plain.bytes() / 2;
      EXPECT_GE(status.moved_pages, pages);
      EXPECT_EQ(plain.where(), (Counts{{1, pages}})) << "nothing has been touched";
      EXPECT_TRUE(is_filled(plain.data(), half, 4));
      // The kernel does not insist: what somebody else holds just then stays until it is marked
      // again.
      const size_t most = pages / 2 - pages / 20;
      EXPECT_GE(plain.where()[2], most);
      EXPECT_GE(plain.where()[1], pages / 2) << "the other half";
      // Changed again: what is marked goes by what holds when it is touched.
      ASSERT_EQ(set(placement(cgroup_, {{3, 1}})), 0);
      fill(plain.data() + half, half, 4);
      EXPECT_GE(plain.where()[3], most);
      EXPECT_TRUE(eventually([&] {
        mark(plain);
        plain.touch();
        return plain.where() == Counts{{3, pages}};
      }));
      EXPECT_LT(mark(plain).moved_pages, 64u) << "stacks and the like";
    });
  }
}

TEST_F(Redistribute, OnTouchLeavesWhatOthersMapAsWell) {
  ASSERT_EQ(set(placement(cgroup_, {{1, 1}})), 0);
  inside([&] {
    Plain plain(8 * kMib);
    fill(plain.data(), plain.bytes(), 4);
    ASSERT_EQ(set(placement(cgroup_, {{2, 1}})), 0);
    const pid_t child = start_child([] {
      pause();
      return 0;
    });
    EXPECT_GE(mark(plain).refused_pages[MEMSLUICE_REFUSED_SHARED], plain.bytes() / kPageBytes);
    EXPECT_TRUE(is_filled(plain.data(), plain.bytes(), 4));
    EXPECT_EQ(plain.where(), (Counts{{1, plain.bytes() / kPageBytes}}));
    redistribute();
    EXPECT_EQ(plain.where(), (Counts{{2, plain.bytes() / kPageBytes}}));
    kill(child, SIGKILL);
    wait_child(child);
  });
}

// What is marked lives on through all that may happen to a mapping before it is touched.
TEST_F(Redistribute, MarkedPagesLiveThroughEverything) {
  ASSERT_EQ(set(placement(cgroup_, {{1, 1}})), 0);
  inside([&] {
    Plain plain(24 * kMib);
    fill(plain.data(), plain.bytes(), 6);
    ASSERT_EQ(set(placement(cgroup_, {{2, 1}})), 0);
    mark(plain);
    char* at = plain.data();
    ASSERT_EQ(mprotect(at, kMib, PROT_READ), 0);
    EXPECT_TRUE(is_filled(at, kMib, 6));
    ASSERT_EQ(mprotect(at, kMib, PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(in_child([&] { return is_filled(at, plain.bytes(), 6) ? 0 : 1; }), 0) << "fork";
    mark(plain);
    ASSERT_EQ(munmap(at + kMib, kMib), 0);
    ASSERT_NE(mremap(at + 2 * kMib, kMib, kMib, MREMAP_MAYMOVE | MREMAP_FIXED, at + kMib),
              MAP_FAILED);
    EXPECT_TRUE(is_filled(at, 2 * kMib, 6));
    ASSERT_EQ(madvise(at + 3 * kMib, kMib, MADV_DONTNEED), 0);
    EXPECT_TRUE(is_filled(at + 3 * kMib, 1, 0));
    char text[kPageBytes];
    Descriptor memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(pread(memory.get(), text, sizeof(text), reinterpret_cast<off_t>(at + 4 * kMib)),
              static_cast<ssize_t>(sizeof(text)));
    Descriptor null(open("/dev/zero", O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(read(null.get(), at + 5 * kMib, kMib), static_cast<ssize_t>(kMib));
    EXPECT_TRUE(is_filled(at + 6 * kMib, 18 * kMib, 6));
  });
}

// Both ways at once, writers, and another placement all the time: every word is as it was written.
TEST_F(Redistribute, ChangesUnderWriters) {
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne, 0)), 0);
  inside([&] {
    Plain base(8 * kMib), huge(16 * kMib, MADV_HUGEPAGE);
    Life lives[] = {Life(base.data(), base.bytes()), Life(huge.data(), huge.bytes())};
    {
      Meanwhile touched([&] { redistribute(MEMSLUICE_MIGRATE_ON_TOUCH); });
      for (uint32_t round = 0; round < 60; round++) {
        const ChannelList channels = {{1 + round % 3, 1 + round % 7},
                                      {1 + (round + 1) % 3, round % 5}};
        ASSERT_EQ(set(placement(cgroup_, channels, round % 10)), 0);
        redistribute();
      }
      EXPECT_GT(touched.times(), 0u);
    }
    for (Life& life : lives) EXPECT_TRUE(life.intact());
  });
}

TEST_F(Redistribute, EndsWithWhatItMoves) {
  ASSERT_EQ(set(placement(cgroup_, {{1, 1}})), 0);
  const pid_t child = start_ready_child([&](auto ready) {
    cgroup_.enter(getpid());
    Plain plain(32 * kMib);
    plain.touch();
    ready();
    pause();
    return 0;
  });
  ASSERT_EQ(set(placement(cgroup_, {{2, 1}})), 0);
  Descriptor slow(start(4));
  ASSERT_GE(slow.get(), 0);
  kill(child, SIGKILL);
  wait_child(child);
  ASSERT_EQ(clear_tenant(cgroup_.id()), 0);
  EXPECT_EQ(ended(slow.get()).state, MEMSLUICE_REQUEST_DONE) << "nothing is left to be moved";
}

TEST_F(Redistribute, WhatMeansNothingIsRefused) {
  memsluice_request_status status;
  auto migrate = request(cgroup_, &status);
  EXPECT_EQ(try_to(migrate), -ENODATA) << "no placement";
  ASSERT_EQ(set(placement(cgroup_, kTwoThree)), 0);
  Cgroup other("no-tenant");
  EXPECT_EQ(try_to(request(other, &status)), -ENOENT);
  const auto wrong = [&](auto&& change) {
    auto changed = migrate;
    change(changed);
    return try_to(changed);
  };
  EXPECT_EQ(wrong([](auto& m) { m.target_node = 1; }), -EINVAL);
  EXPECT_EQ(wrong([](auto& m) { m.pidfd = 0; }), -EINVAL);
  EXPECT_EQ(wrong([](auto& m) { m.address = 4096; }), -EINVAL);
  EXPECT_EQ(wrong([](auto& m) { m.source_node = 9; }), -ENODEV);
  EXPECT_EQ(wrong([](auto& m) { m.reserved = 1; }), -EINVAL);
  EXPECT_EQ(wrong([](auto& m) { m.flags = 1U << 4; }), -EINVAL);
  EXPECT_EQ(wrong([](auto& m) { m.mib_per_s = MEMSLUICE_MIB_PER_S_MAX + 1; }), -EINVAL);
  EXPECT_EQ(wrong([](auto& m) {
              m.flags = MEMSLUICE_MIGRATE_ON_TOUCH;
              m.mib_per_s = 1;
            }),
            -EINVAL);
  EXPECT_EQ(wrong([](auto& m) {
              m.kind = MEMSLUICE_MIGRATE_TENANT_NODE;
              m.source_node = 1;
              m.target_node = 2;
              m.flags = MEMSLUICE_MIGRATE_ON_TOUCH;
            }),
            -EINVAL);
  EXPECT_EQ(in_child([&] {
              if (setresuid(65534, 65534, 65534)) return 100;
              return -try_to(migrate);
            }),
            EPERM);
  // A caller that was built before there were rates.
  EXPECT_EQ(wrong([](auto& m) { m.size = offsetof(memsluice_migrate, mib_per_s); }), 0);
}

}  // namespace
}  // namespace memsluice::test
