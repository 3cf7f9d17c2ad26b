// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "tests/vm/module/world.h"

namespace memsluice::test {
namespace {

const char kKnobs[] = "/sys/kernel/memsluice/";

// Counted from what the child's own page tables say, in memory that it shares with the test.
struct Seen {
  std::atomic<uint64_t> hot_on_fast;
  std::atomic<uint64_t> cold_on_fast;
  std::atomic<uint64_t> rounds;
  std::atomic<bool> corrupt;
  std::atomic<bool> swap;  // what was hot becomes cold, and the other way round
};

class Tiering : public testing::Test {
 protected:
  void SetUp() override {
    write_file(std::string(kKnobs) + "scan_period_ms", "100");
    write_file(std::string(kKnobs) + "scan_cpu_percent", "50");
    write_file(std::string(kKnobs) + "tier_period_ms", "50");
    seen_ = static_cast<Seen*>(
        mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(static_cast<void*>(seen_), MAP_FAILED);
  }

  void TearDown() override {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      wait_child(child_);
    }
    munmap(seen_, sizeof(Seen));
    write_file(std::string(kKnobs) + "scan_period_ms", "1000");
    write_file(std::string(kKnobs) + "scan_cpu_percent", "5");
    write_file(std::string(kKnobs) + "tier_period_ms", "500");
    EXPECT_TRUE(eventually([] { return isolated_pages() == 0; }, 20)) << isolated_pages();
  }

  // Two areas on the slow node, of which only one is used.
  void start(const Cgroup& cgroup, size_t bytes, Pages::Huge huge = Pages::Huge::kNever) {
    child_ = start_child([this, &cgroup, bytes, huge] {
      cgroup.enter(getpid());
      Pages first(bytes, kSlow, huge, 1), second(bytes, kSlow, huge, 2);
      for (;;) {
        const Pages& hot = seen_->swap ? second : first;
        const Pages& cold = seen_->swap ? first : second;
        for (int i = 0; i < 20; i++)
          if (!hot.intact()) seen_->corrupt = true;
        seen_->hot_on_fast = hot.count_on(kFast);
        seen_->cold_on_fast = cold.count_on(kFast);
        seen_->rounds++;
      }
      return 0;
    });
  }

  Seen* seen_ = nullptr;
  pid_t child_ = -1;
};

constexpr size_t kAreaBytes = 16 << 20;
constexpr uint64_t kAreaPages = kAreaBytes / kPageBytes;

TEST_F(Tiering, HotPagesMoveUpAndColdOnesMakeRoom) {
  Cgroup cgroup("tiering");
  // Room for one area and little more.
  ASSERT_EQ(set_tenant(cgroup, policy_tiering(kAreaBytes + (4 << 20))), 0);
  start(cgroup, kAreaBytes);
  EXPECT_TRUE(eventually([&] { return seen_->hot_on_fast > kAreaPages * 95 / 100; }))
      << seen_->hot_on_fast << read_file("/proc/memsluice/hotness");
  seen_->swap = true;
  EXPECT_TRUE(eventually([&] {
    return seen_->hot_on_fast > kAreaPages * 90 / 100 &&
           seen_->cold_on_fast < kAreaPages * 30 / 100;
  })) << seen_->hot_on_fast
      << " " << seen_->cold_on_fast << read_file("/proc/memsluice/hotness");
  EXPECT_FALSE(seen_->corrupt);
  int error;
  // A page is seen where it has moved to before it is counted.
  EXPECT_TRUE(eventually([&] {
    auto now = tenant_status(cgroup.id(), &error);
    return now.promoted_pages >= kAreaPages * 2 * 90 / 100 &&
           now.demoted_pages >= kAreaPages * 70 / 100;
  })) << read_file("/proc/memsluice/tenants");
  auto status = tenant_status(cgroup.id(), &error);
  ASSERT_EQ(error, 0);
  EXPECT_GT(status.scans, 0U);
  EXPECT_EQ(status.processes, 1U);
}

TEST_F(Tiering, HugePagesStayHuge) {
  Cgroup cgroup("tiering-huge");
  ASSERT_EQ(set_tenant(cgroup, policy_tiering(kAreaBytes + (4 << 20))), 0);
  start(cgroup, kAreaBytes, Pages::Huge::kAlways);
  EXPECT_TRUE(eventually([&] { return seen_->hot_on_fast == kAreaPages; })) << seen_->hot_on_fast;
  auto smaps = read_file("/proc/" + std::to_string(child_) + "/smaps_rollup");
  auto at = smaps.find("AnonHugePages:");
  ASSERT_NE(at, std::string::npos);
  EXPECT_GE(std::stoul(smaps.substr(at + 14)), 2 * kAreaBytes / 1024);
  EXPECT_FALSE(seen_->corrupt);
}

TEST_F(Tiering, TheLimitHoldsWhenItIsLowered) {
  Cgroup cgroup("tiering-limit");
  ASSERT_EQ(set_tenant(cgroup, policy_tiering(MEMSLUICE_NO_LIMIT)), 0);
  start(cgroup, kAreaBytes);
  ASSERT_TRUE(eventually([&] { return seen_->hot_on_fast > kAreaPages * 95 / 100; }));
  ASSERT_EQ(set_tenant(cgroup, policy_tiering(4 << 20)), 0);
  EXPECT_TRUE(eventually([&] {
    int error;
    return tenant_status(cgroup.id(), &error).fast_bytes <= (5 << 20);
  })) << read_file("/proc/memsluice/hotness");
  EXPECT_FALSE(seen_->corrupt);
}

TEST_F(Tiering, WithoutThePolicyNothingMoves) {
  Cgroup cgroup("tiering-off");
  ASSERT_EQ(set_tenant(cgroup, policy_off()), 0);
  start(cgroup, kAreaBytes);
  int error;
  // Scans go on: an operator sees how hot a tenant is before deciding.
  ASSERT_TRUE(eventually([&] { return tenant_status(cgroup.id(), &error).scans >= 20; }));
  EXPECT_EQ(tenant_status(cgroup.id(), &error).promoted_pages, 0U);
  EXPECT_LT(seen_->hot_on_fast, 16U);
}

TEST_F(Tiering, ZeroBandwidthMovesNothing) {
  Cgroup cgroup("tiering-zero");
  auto policy = policy_tiering(MEMSLUICE_NO_LIMIT);
  policy.promote_mib_per_s = 0;
  ASSERT_EQ(set_tenant(cgroup, policy), 0);
  start(cgroup, kAreaBytes);
  int error;
  ASSERT_TRUE(eventually([&] { return tenant_status(cgroup.id(), &error).scans >= 20; }));
  EXPECT_EQ(tenant_status(cgroup.id(), &error).promoted_pages, 0U);
}

TEST(Knobs, AreBoundedAndReadBack) {
  struct {
    const char* name;
    const char* good;
    const char* bad[4];
  } const knobs[] = {
      {"scan_period_ms", "250", {"9", "600001", "x", "-1"}},
      {"scan_cpu_percent", "7", {"0", "101", "", "5 6"}},
      {"cooling_scans", "3", {"0", "10001", "1.5", "0x10"}},
      {"batch_stall_us", "100", {"9", "1000001", "1e3", " "}},
      {"pool_mib", "0", {"65537", "-1", "1M", "0x1"}},
      {"tier_period_ms", "99", {"9", "600001", "+", "99999999999999999999"}},
      {"fast_free_low_percent", "1", {"4", "51", "-0x1", "nan"}},
      {"fast_free_high_percent", "4", {"1", "51", "4%", "four"}},
  };
  for (const auto& knob : knobs) {
    auto path = std::string(kKnobs) + knob.name;
    auto before = read_file(path);
    for (const char* bad : knob.bad) {
      if (!*bad) continue;
      FILE* file = fopen(path.c_str(), "w");
      ASSERT_NE(file, nullptr);
      fputs(bad, file);
      EXPECT_NE(fclose(file), 0) << knob.name << " took " << bad;
      EXPECT_EQ(read_file(path), before) << knob.name << " " << bad;
    }
    write_file(path, knob.good);
    EXPECT_EQ(read_file(path), std::string(knob.good) + "\n");
    write_file(path, before);
  }
}

}  // namespace
}  // namespace memsluice::test
