// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "tests/vm/module/channels.h"
#include "tests/vm/module/machine.h"

namespace memsluice::test {
namespace {

class Placement : public PlacedTest {};

TEST_F(Placement, BasePagesLieByWeight) {
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne, 0)), 0);
  inside([] { expect_by_weight(new_pages(), 2); });
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne)), 0);
  inside([] { expect_by_weight(new_pages(72 * kMib), 2 * kGranulePages); });
}

TEST_F(Placement, AGranuleLiesTogether) {
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne)), 0);
  inside([] {
    Plain plain(24 * kMib);
    plain.touch();
    for (size_t at = 0; at < plain.bytes(); at += kHugeBytes)
      EXPECT_EQ(counts(plain.data() + at, kHugeBytes).size(), 1u);
  });
}

TEST_F(Placement, HugePagesLieByWeight) {
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne)), 0);
  inside([] {
    const auto before = field("/proc/vmstat", "thp_fault_alloc");
    expect_by_weight(new_pages(72 * kMib, MADV_HUGEPAGE), 2 * kGranulePages);
    EXPECT_GE(field("/proc/vmstat", "thp_fault_alloc") - before, 30u);
  });
}

TEST_F(Placement, SharedMemoryLiesByWeight) {
  for (const uint32_t order : {0U, 9U}) {
    ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne, order)), 0);
    const size_t slack = 2UL << order;
    inside([&] {
      Descriptor memory(memfd_create("placed", MFD_CLOEXEC));
      ASSERT_EQ(ftruncate(memory.get(), 48 * kMib), 0);
      Mapping shared(48 * kMib, MAP_SHARED, memory.get());
      fill(shared.data(), 24 * kMib, 1);
      const std::vector<char> text(kMib, 'x');
      for (size_t at = 24 * kMib; at < 48 * kMib; at += kMib)
        ASSERT_EQ(pwrite(memory.get(), text.data(), kMib, static_cast<off_t>(at)),
                  static_cast<ssize_t>(kMib));
      // What has been written has yet to be mapped, to be found.
      for (size_t at = 0; at < shared.bytes(); at += kPageBytes)
        asm volatile("" ::"r"(*static_cast<volatile char*>(shared.data() + at)));
      expect_by_weight(counts(shared.data(), shared.bytes()), slack);
      EXPECT_TRUE(is_filled(shared.data(), 24 * kMib, 1));
    });
  }
}

TEST_F(Placement, CopiesOnWriteLieByWeight) {
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne, 0)), 0);
  Plain plain(12 * kMib);
  plain.touch();
  EXPECT_EQ(plain.where(), (Counts{{kHome, 12 * kMib / kPageBytes}})) << "outside nothing changes";
  inside([&] {
    plain.touch();
    expect_by_weight(plain.where(), 2);
  });
}

TEST_F(Placement, PagesReadFromSwapLieByWeight) {
  Swap swap;
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne, 0)), 0);
  inside([] {
    Plain plain(12 * kMib);
    fill(plain.data(), plain.bytes(), 3);
    ASSERT_EQ(madvise(plain.data(), plain.bytes(), MADV_PAGEOUT), 0);
    EXPECT_TRUE(is_filled(plain.data(), plain.bytes(), 3));
    expect_by_weight(plain.where(), 64);
  });
}

TEST_F(Placement, WhoIsChargedDecides) {
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne, 0)), 0);
  Plain outside(6 * kMib), inside_memory(6 * kMib);
  std::vector<char> text(6 * kMib, 'x');
  const pid_t child = start_ready_child([&](auto ready) {
    cgroup_.enter(getpid());
    ready();
    pause();
    return 0;
  });
  // From outside into the tenant's memory: its pages.
  iovec local = {text.data(), text.size()}, remote = {inside_memory.data(), text.size()};
  ASSERT_EQ(process_vm_writev(child, &local, 1, &remote, 1, 0), static_cast<ssize_t>(text.size()));
  std::vector<void*> pages;
  for (size_t at = 0; at < text.size(); at += kPageBytes)
    pages.push_back(inside_memory.data() + at);
  std::vector<int> nodes(pages.size());
  ASSERT_EQ(syscall(SYS_move_pages, child, pages.size(), pages.data(), nullptr, nodes.data(), 0),
            0);
  Counts counted;
  for (int node : nodes) counted[node]++;
  expect_by_weight(counted, 2);
  kill(child, SIGKILL);
  wait_child(child);

  // From the tenant into other memory: not its pages.
  const pid_t parent = getpid();
  inside([&] {
    remote.iov_base = outside.data();
    EXPECT_EQ(process_vm_writev(parent, &local, 1, &remote, 1, 0),
              static_cast<ssize_t>(text.size()));
  });
  EXPECT_EQ(outside.where(), (Counts{{kHome, text.size() / kPageBytes}}));
}

TEST_F(Placement, PoliciesThatAreSetGoBeforeIt) {
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne, 0)), 0);
  const unsigned long node_2 = 1UL << 2;
  const Counts all_on_2 = {{2, 4 * kMib / kPageBytes}};
  inside([&] {
    Plain bound(4 * kMib);
    ASSERT_EQ(syscall(SYS_mbind, bound.data(), bound.bytes(), MPOL_BIND, &node_2, 64UL, 0), 0);
    bound.touch();
    EXPECT_EQ(bound.where(), all_on_2);

    Descriptor memory(memfd_create("bound", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(memory.get(), 4 * kMib), 0);
    Mapping shared(4 * kMib, MAP_SHARED, memory.get());
    ASSERT_EQ(syscall(SYS_mbind, shared.data(), shared.bytes(), MPOL_BIND, &node_2, 64UL, 0), 0);
    fill(shared.data(), shared.bytes(), 1);
    EXPECT_EQ(counts(shared.data(), shared.bytes()), all_on_2);

    ASSERT_EQ(syscall(SYS_set_mempolicy, MPOL_PREFERRED, &node_2, 64UL), 0);
    EXPECT_EQ(new_pages(4 * kMib), all_on_2);
    ASSERT_EQ(syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0UL), 0);
    expect_by_weight(new_pages(6 * kMib), 2);
    int mode = -1;
    EXPECT_EQ(
        syscall(SYS_get_mempolicy, &mode, nullptr, 0UL, bound.data() + bound.bytes(), MPOL_F_ADDR),
        0);
    EXPECT_EQ(mode, MPOL_DEFAULT) << "what applications see";
  });
}

TEST_F(Placement, ACpusetGoesBeforeIt) {
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne, 0)), 0);
  cgroup_.write("cpuset.mems", "0,2");
  inside([] {
    Counts where = new_pages(6 * kMib);
    EXPECT_EQ(where[1] + where[3], 0u);
    EXPECT_GE(where[2], 6 * 256u / 3);
  });
}

TEST_F(Placement, HoldsForCgroupsBelowAndForNoOthers) {
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne, 0)), 0);
  cgroup_.write("cgroup.subtree_control", "+memory");
  Cgroup below("below", cgroup_.path()), beside("beside");
  inside(below, [] { expect_by_weight(new_pages(6 * kMib), 2); });
  inside(beside, [] { EXPECT_EQ(new_pages(6 * kMib), (Counts{{kHome, 1536}})); });
  // A tenant of its own without a placement.
  ASSERT_EQ(set_tenant(below, policy_off()), 0);
  inside(below, [] { EXPECT_EQ(new_pages(6 * kMib), (Counts{{kHome, 1536}})); });
}

TEST_F(Placement, ChangesHoldForNewPages) {
  ASSERT_EQ(set(placement(cgroup_, {{1, 1}})), 0);
  inside([&] {
    const Counts all = {{1, 1024}};
    Plain first(4 * kMib), second(4 * kMib), third(4 * kMib);
    first.touch();
    ASSERT_EQ(set(placement(cgroup_, {{3, 5}})), 0);
    second.touch();
    ASSERT_EQ(set(placement(cgroup_, {})), 0);
    third.touch();
    EXPECT_EQ(first.where(), (Counts{{1, 1024}}));
    EXPECT_EQ(second.where(), (Counts{{3, 1024}}));
    EXPECT_EQ(third.where(), (Counts{{kHome, 1024}}));
  });
  int result;
  get(cgroup_, &result);
  EXPECT_EQ(result, -ENODATA);
}

TEST_F(Placement, FullChannelsAreLeftForOthersOfTheTenantThenForFallbacks) {
  ASSERT_EQ(set(placement(cgroup_, {{1, 1}, {3, 1}, {2, 0}})), 0);
  const auto killed = field("/proc/vmstat", "oom_kill");
  inside([&] {
    Plain plain(560 * kMib);
    plain.touch();
    auto where = plain.where();
    EXPECT_GT(where[1], 200 * 256u);
    EXPECT_GT(where[3], 200 * 256u);
    EXPECT_EQ(where[2], plain.bytes() / kPageBytes - where[1] - where[3]);
    int result;
    const auto now = get(cgroup_, &result);
    EXPECT_GE(now.fallback_folios, where[2] * 9 / 10);
    EXPECT_EQ(now.spilled_folios, 0u);
  });
  EXPECT_EQ(field("/proc/vmstat", "oom_kill"), killed);
}

TEST_F(Placement, WhatFindsNoRoomIsSpilledAndCounted) {
  ASSERT_EQ(set(placement(cgroup_, {{3, 1}})), 0);
  inside([&] {
    Plain plain(300 * kMib);
    plain.touch();
    auto where = plain.where();
    EXPECT_GT(where[3], 200 * 256u);
    int result;
    const auto now = get(cgroup_, &result);
    EXPECT_EQ(now.fallback_folios, 0u);
    EXPECT_GE(now.spilled_folios, (plain.bytes() / kPageBytes - where[3]) * 9 / 10);
  });
}

TEST_F(Placement, ReadsBackWhatWasSet) {
  const ChannelList channels = {{3, 36'000}, {1, 27'000}, {2, 0}};
  ASSERT_EQ(set(placement(cgroup_, channels, 4)), 0);
  int result;
  const auto now = get(cgroup_, &result);
  ASSERT_EQ(result, 0);
  EXPECT_EQ(now.granule_order, 4u);
  ASSERT_EQ(now.count, 3u);
  for (size_t i = 0; i < channels.size(); i++) {
    EXPECT_EQ(now.channels[i].node, channels[i].node);
    EXPECT_EQ(now.channels[i].weight, channels[i].weight);
  }
}

TEST_F(Placement, WhatMeansNothingIsRefusedAndChangesNothing) {
  ASSERT_EQ(set(placement(cgroup_, {{1, 1}})), 0);
  EXPECT_EQ(set(placement(cgroup_, {{1, 1}, {1, 2}})), -EINVAL);
  EXPECT_EQ(set(placement(cgroup_, {{1, 0}})), -EINVAL);
  EXPECT_EQ(set(placement(cgroup_, {{9, 1}})), -ENODEV);
  EXPECT_EQ(set(placement(cgroup_, {{UINT32_MAX, 1}})), -ENODEV);
  EXPECT_EQ(set(placement(cgroup_, {{1, 64}, {2, 1}})), -ERANGE);
  EXPECT_EQ(set(placement(cgroup_, {{1, 1}}, 19)), -EINVAL);
  auto wrong = placement(cgroup_, {{1, 1}});
  wrong.reserved = 1;
  EXPECT_EQ(set(wrong), -EINVAL);
  wrong = placement(cgroup_, {{1, 1}});
  wrong.channels[1].node = 1;
  EXPECT_EQ(set(wrong), -EINVAL) << "beyond the count";
  wrong.count = 65;
  EXPECT_EQ(set(wrong), -EINVAL);
  Cgroup other("no-tenant");
  EXPECT_EQ(set(placement(other, {{1, 1}})), -ENOENT);
  int result;
  get(other, &result);
  EXPECT_EQ(result, -ENOENT);
  EXPECT_EQ(get(cgroup_, &result).channels[0].node, 1u);
  EXPECT_EQ(result, 0);
  EXPECT_EQ(in_child([&] {
              if (setresuid(65534, 65534, 65534)) return 100;
              return -set(placement(cgroup_, {{1, 1}}));
            }),
            EPERM);
}

TEST_F(Placement, DecidesAloneAsLongAsItHolds) {
  ASSERT_EQ(set_tenant(cgroup_, policy_tiering(MEMSLUICE_NO_LIMIT)), 0);
  ASSERT_EQ(set(placement(cgroup_, {{1, 1}})), 0);
  const pid_t child = start_ready_child([&](auto ready) {
    cgroup_.enter(getpid());
    Plain plain(8 * kMib);
    plain.touch();
    ready();
    for (;;) plain.touch();
    return 0;
  });
  int error;
  const auto status = [&] { return tenant_status(cgroup_.id(), &error); };
  const auto scans = status().scans;
  EXPECT_TRUE(eventually([&] { return status().scans >= scans + 5; }));
  EXPECT_EQ(status().promoted_pages, 0u) << "from a channel that is slow";
  ASSERT_EQ(set(placement(cgroup_, {})), 0);
  EXPECT_TRUE(eventually([&] { return status().promoted_pages > 0; }));
  kill(child, SIGKILL);
  wait_child(child);
}

TEST_F(Placement, EndsWithItsTenant) {
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne)), 0);
  ASSERT_EQ(clear_tenant(cgroup_.id()), 0);
  int result;
  get(cgroup_, &result);
  EXPECT_EQ(result, -ENOENT);
  inside([] { EXPECT_EQ(new_pages(4 * kMib), (Counts{{kHome, 1024}})); });
}

// Of a tenant that is cleared, and of one whose cgroup is removed.
TEST_F(Placement, NothingIsHookedWhenTheLastHasEnded) {
  const auto hooked = [] {
    const auto functions = read_file("/sys/kernel/tracing/enabled_functions");
    return functions.find("get_vma_policy ") != std::string::npos ||
           functions.find("shmem_alloc_and_add_folio ") != std::string::npos;
  };
  EXPECT_TRUE(eventually([&] { return !hooked(); }, 20));
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne)), 0);
  EXPECT_TRUE(hooked());
  {
    Cgroup other("placed-too");
    ASSERT_EQ(set_tenant(other, policy_off()), 0);
    ASSERT_EQ(set(placement(other, kThreeTwoOne)), 0);
    ASSERT_EQ(clear_tenant(cgroup_.id()), 0);
    usleep(200'000);
    EXPECT_TRUE(hooked()) << "there is another";
  }
  EXPECT_TRUE(eventually([&] { return !hooked(); }, 20));
  ASSERT_EQ(set_tenant(cgroup_, policy_off()), 0);
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne)), 0);
  EXPECT_TRUE(hooked());
  ASSERT_EQ(clear_tenant(cgroup_.id()), 0);
  EXPECT_TRUE(eventually([&] { return !hooked(); }, 20));
}

TEST_F(Placement, FtraceStaysOnAsLongAsItIsNeeded) {
  const char* enabled = "/proc/sys/kernel/ftrace_enabled";
  const auto disable = [&] {
    Descriptor file(open(enabled, O_WRONLY | O_CLOEXEC));
    return write(file.get(), "0", 1) < 0 ? -errno : 0;
  };
  if (disable() == -EOPNOTSUPP) GTEST_SKIP() << "this kernel never switches ftrace off";
  // What a test before has hooked is let go of in the background.
  ASSERT_TRUE(eventually([&] { return disable() == 0; }, 20));
  EXPECT_EQ(set(placement(cgroup_, kThreeTwoOne)), -EBUSY);
  write_file(enabled, "1");
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne)), 0);
  EXPECT_EQ(disable(), -EBUSY);
  EXPECT_EQ(read_file(enabled), "1\n");
}

TEST_F(Placement, TheCensusSaysTheSame) {
  ASSERT_EQ(set(placement(cgroup_, kThreeTwoOne, 0)), 0);
  inside([&] {
    Plain plain(24 * kMib);
    plain.touch();
    std::vector<memsluice_census_row> rows;
    ASSERT_EQ(take_census(-1, &rows), 0);
    Counts counted;
    for (const memsluice_census_row& row : rows)
      if (row.cgroup_id == cgroup_.id()) counted[row.node] += row.pages[MEMSLUICE_FRAMES_ANON];
    // Stacks and what was forked are beside it.
    for (const auto& [node, count] : plain.where()) {
      EXPECT_GE(counted[node], count);
      EXPECT_LT(counted[node], count + 256);
    }
  });
}

// Faults, changes and comings and goings at once: nothing is lost, and everything is placed.
TEST_F(Placement, ChangesAtRandomUnderLoad) {
  std::vector<pid_t> children;
  for (int i = 0; i < 2; i++)
    children.push_back(start_child([&] {
      cgroup_.enter(getpid());
      for (uint8_t round = 0; round < 60; round++) {
        Plain plain(8 * kMib, round % 2 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        fill(plain.data(), plain.bytes(), round);
        if (!is_filled(plain.data(), plain.bytes(), round)) return 1;
        if (plain.where().contains(-1)) return 2;
      }
      return 0;
    }));
  for (uint32_t round = 0; round < 300; round++) {
    const ChannelList channels = {{1 + round % 3, 1 + round % 7}, {1 + (round + 1) % 3, round % 5}};
    EXPECT_EQ(set(placement(cgroup_, round % 10 ? channels : ChannelList{}, round % 10)), 0);
    if (round % 50 == 49) {
      EXPECT_EQ(clear_tenant(cgroup_.id()), 0);
      EXPECT_EQ(set_tenant(cgroup_, policy_off()), 0);
    }
    usleep(3000);
  }
  for (const pid_t child : children) EXPECT_EQ(wait_child(child), 0);
}

}  // namespace
}  // namespace memsluice::test
