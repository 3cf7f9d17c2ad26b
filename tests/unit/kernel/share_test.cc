// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

extern "C" {
#include "kernel/copy/share.h"
}

namespace {

constexpr uint64_t kMost = 1000;
constexpr uint64_t kLong = 2 * MEMSLUICE_SHARE_RECENT_NS;

class Share : public ::testing::Test {
 protected:
  bool take(uint64_t id, uint64_t amount) {
    return memsluice_share_take(&share_, id, amount, kMost, ++now_ns_);
  }
  void give(uint64_t id, uint64_t amount) { memsluice_share_give(&share_, id, amount); }
  void wait() { now_ns_ += kLong; }

  memsluice_share share_ = {};
  uint64_t now_ns_ = 0;
};

TEST_F(Share, WhoIsAloneGetsAllAndNoMore) {
  EXPECT_TRUE(take(1, 600));
  EXPECT_TRUE(take(1, 400));
  EXPECT_FALSE(take(1, 1));
  give(1, 400);
  EXPECT_TRUE(take(1, 400));
}

TEST_F(Share, WhatIsLargerThanAllIsCopiedAlone) {
  EXPECT_TRUE(take(1, 5 * kMost));
  EXPECT_FALSE(take(2, 1));
  give(1, 5 * kMost);
  EXPECT_TRUE(take(2, 1));
  EXPECT_FALSE(take(1, 5 * kMost));
}

TEST_F(Share, WhoAsksForLittleGetsRoomFromWhoHasMuch) {
  EXPECT_TRUE(take(1, 900));
  EXPECT_FALSE(take(2, 200));
  give(1, 450);
  EXPECT_TRUE(take(2, 200));
  // Half of it is the other's, though not all of that is used.
  EXPECT_FALSE(take(1, 100));
  EXPECT_TRUE(take(1, 50));
}

TEST_F(Share, APartIsKeptForAWhileOnly) {
  EXPECT_TRUE(take(2, 1));
  give(2, 1);
  EXPECT_TRUE(take(1, 400));
  EXPECT_FALSE(take(1, 200));
  wait();
  EXPECT_TRUE(take(1, 200));
}

TEST_F(Share, TheIdZeroIsATenantLikeOthers) {
  EXPECT_TRUE(take(0, 500));
  EXPECT_TRUE(take(7, 500));
  EXPECT_FALSE(take(0, 1));
  give(7, 500);
  give(0, 500);
  EXPECT_EQ(share_.under_way, 0U);
}

TEST_F(Share, MoreTenantsThanPlacesAreRefusedOnlyWhileAllHaveSomething) {
  for (uint64_t id = 0; id < MEMSLUICE_SHARE_TENANTS; id++) EXPECT_TRUE(take(id, 1));
  EXPECT_FALSE(take(100, 1));
  give(5, 1);
  EXPECT_TRUE(take(100, 1));
  EXPECT_FALSE(take(5, 1));
}

// Two tenants that always want more, and a device that serves what is under way evenly.
TEST_F(Share, GreedyTenantsAreServedAlikeWhateverTheirBatches) {
  constexpr double kServedPerRound = 50;
  struct Tenant {
    uint64_t batch;
    uint64_t under_way = 0;
    double progress = 0;
    double served = 0;
  };
  std::vector<Tenant> tenants = {{.batch = 100}, {.batch = 7}};
  for (int round = 0; round < 10000; round++) {
    for (uint64_t id = 0; id < tenants.size(); id++) {
      while (take(id, tenants[id].batch)) tenants[id].under_way += tenants[id].batch;
    }
    const auto total = static_cast<double>(share_.under_way);
    for (uint64_t id = 0; id < tenants.size(); id++) {
      auto& tenant = tenants[id];
      const double served = kServedPerRound * static_cast<double>(tenant.under_way) / total;
      tenant.served += served;
      tenant.progress += served;
      while (tenant.progress >= static_cast<double>(tenant.batch) && tenant.under_way > 0) {
        tenant.progress -= static_cast<double>(tenant.batch);
        tenant.under_way -= tenant.batch;
        give(id, tenant.batch);
      }
    }
  }
  EXPECT_NEAR(tenants[0].served / tenants[1].served, 1, 0.1);
}

RC_GTEST_PROP(ShareProperties, NeverMoreThanPromisedAndEverythingIsGivenBack, ()) {
  memsluice_share share = {};
  std::map<uint64_t, std::vector<uint64_t>> taken;
  uint64_t now_ns = 0;
  const auto steps = *rc::gen::inRange(1, 300);
  for (int step = 0; step < steps; step++) {
    const auto id = *rc::gen::inRange<uint64_t>(0, 6);
    now_ns += *rc::gen::inRange<uint64_t>(0, MEMSLUICE_SHARE_RECENT_NS);
    auto& mine = taken[id];
    if (!mine.empty() && *rc::gen::arbitrary<bool>()) {
      memsluice_share_give(&share, id, mine.back());
      mine.pop_back();
      continue;
    }
    const auto amount = *rc::gen::inRange<uint64_t>(1, 3 * kMost / 2);
    const auto before = share.under_way;
    if (memsluice_share_take(&share, id, amount, kMost, now_ns)) {
      mine.push_back(amount);
      RC_ASSERT(before == 0 || share.under_way <= kMost);
    } else {
      RC_ASSERT(before > 0);
      RC_ASSERT(share.under_way == before);
      // Who has nothing is refused only what does not fit.
      RC_ASSERT(!mine.empty() || before + amount > kMost);
    }
  }
  for (auto& [id, mine] : taken)
    for (const auto amount : mine) memsluice_share_give(&share, id, amount);
  RC_ASSERT(share.under_way == 0);
}

}  // namespace
