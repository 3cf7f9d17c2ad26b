// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/upkeep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>

#include "daemon/base/hand_clock.h"
#include "daemon/base/temporary_directory.h"
#include "daemon/host/fake_module.h"

namespace memsluice {
namespace {

constexpr uint64_t kMib = 1 << 20;
const Placement kThreeTwo = {.channels = {{1, 3}, {2, 2}, {3, 0}}};

TEST(Misplaced, WhatLiesByWeightIsNot) {
  EXPECT_EQ(misplaced_bytes(kThreeTwo, {{1, 300 * kMib}, {2, 200 * kMib}}), 0u);
  EXPECT_EQ(misplaced_bytes(kThreeTwo, {{1, 305 * kMib}, {2, 195 * kMib}}), 0u) << "granules";
  EXPECT_EQ(misplaced_bytes(kThreeTwo, {}), 0u);
  EXPECT_EQ(misplaced_bytes({}, {{1, kMib}}), 0u);
}

TEST(Misplaced, WhatLiesOnNoChannelIs) {
  EXPECT_EQ(misplaced_bytes(kThreeTwo, {{0, 7 * kMib}, {1, 3 * kMib}, {2, 2 * kMib}}), 7 * kMib);
  EXPECT_EQ(misplaced_bytes(kThreeTwo, {{3, 7 * kMib}}), 0u) << "the others may have been full";
}

TEST(Misplaced, WhatIsTooMuchForAWeightIs) {
  EXPECT_EQ(misplaced_bytes(kThreeTwo, {{1, 500 * kMib}, {2, 0}}), 200 * kMib);
  EXPECT_EQ(misplaced_bytes(kThreeTwo, {{0, kMib}, {1, 100 * kMib}, {2, 400 * kMib}}),
            kMib + 200 * kMib);
}

// Never more than there is, and nothing when each has its weight to the byte.
RC_GTEST_PROP(Misplaced, IsAPartOfAll, ()) {
  const auto weights =
      *rc::gen::container<std::vector<uint32_t>>(4, rc::gen::inRange<uint32_t>(0, 17));
  Placement placement;
  std::map<int, uint64_t> exact, any;
  const auto unit = *rc::gen::inRange<uint64_t>(0, 1ULL << 33);
  uint64_t all = 0;
  for (uint32_t node = 0; node < 4; node++) {
    placement.channels.push_back({node, weights[node]});
    exact[static_cast<int>(node)] = unit * weights[node];
    any[static_cast<int>(node)] = *rc::gen::inRange<uint64_t>(0, 1ULL << 40);
    all += any[static_cast<int>(node)];
  }
  RC_ASSERT(misplaced_bytes(placement, exact) == 0);
  RC_ASSERT(misplaced_bytes(placement, any) <= all);
}

TenantView tenant(const char* path, uint64_t id, std::map<int, uint64_t> bytes) {
  TenantView view{.cgroup = {path, id}};
  view.memory.placed_bytes = std::move(bytes);
  return view;
}

TEST(OwnBytes, AreWithoutThoseOfTenantsBelow) {
  auto own = own_bytes({tenant("/", 1, {{0, 100}}), tenant("/a", 2, {{0, 60}, {1, 7}}),
                        tenant("/a/b/c", 3, {{0, 20}}), tenant("/ab", 4, {{0, 5}})});
  EXPECT_EQ(own[1][0], 35u);
  EXPECT_EQ(own[2][0], 40u);
  EXPECT_EQ(own[2][1], 7u);
  EXPECT_EQ(own[3][0], 20u);
  EXPECT_EQ(own[4][0], 5u);
}

class UpkeepTest : public testing::Test {
 protected:
  static constexpr Milliseconds kPeriod{1000};

  UpkeepTest() {
    paths_.cgroup_root = host_.path("/cgroup");
    paths_.nodes = host_.path("/node");
    host_.make_directory("/cgroup/redis.slice");
    lies({{0, 64 * kMib}});
    id_ = Cgroups(paths_.cgroup_root).find("/redis.slice")->id;
    module_.put_tenant(id_, {.placement = kThreeTwo});
    clock_.now = Milliseconds(1'000'000);
    tenants_.emplace(module_, paths_, log_, Config());
    migrations_.emplace(module_, paths_, *loop_, log_);
    upkeep_.emplace(*tenants_, *migrations_, clock_, log_);
  }
  void lies(const std::map<int, uint64_t>& bytes) {
    std::string text = "anon";
    for (const auto& [node, count] : bytes)
      text += " N" + std::to_string(node) + "=" + std::to_string(count);
    host_.write("/cgroup/redis.slice/memory.numa_stat", text + "\nfile N0=99999999999\n");
  }
  size_t requests_after(Milliseconds pause) {
    clock_.now += pause;
    upkeep_->look(kPeriod, 64);
    return module_.requests().size();
  }
  void end(uint64_t id) {
    module_.end_request(id, MEMSLUICE_REQUEST_DONE);
    ASSERT_TRUE(loop_->run_once(Milliseconds(0)).ok());
  }
  void end_moved(uint64_t id, uint64_t pages) {
    module_.requests().at(id)->status.moved_pages = pages;
    end(id);
  }

  TemporaryDirectory host_;
  Paths paths_;
  FakeModule module_;
  HandClock clock_;
  Log log_{LogLevel::kError};
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  std::optional<Tenants> tenants_;
  std::optional<Migrations> migrations_;
  std::optional<Upkeep> upkeep_;
  uint64_t id_ = 0;
};

TEST_F(UpkeepTest, BringsBackWhatLiesElsewhere) {
  ASSERT_EQ(requests_after(kPeriod), 1u);
  const Migration& migration = module_.requests().at(1)->migration;
  EXPECT_EQ(migration.cgroup_id, id_);
  EXPECT_EQ(migration.kind(), MEMSLUICE_MIGRATE_TENANT_PLACED);
  EXPECT_EQ(migration.mib_per_s, 64u);
  EXPECT_TRUE(migrations_->list().at(0).upkeep);
  EXPECT_EQ(requests_after(kPeriod), 1u) << "it runs";
  end_moved(1, 5);
  EXPECT_EQ(requests_after(kPeriod), 1u) << "the end is seen";
  EXPECT_EQ(requests_after(kPeriod), 2u) << "there is more";
  lies({{1, 3 * kMib}, {2, 2 * kMib}});
  end_moved(2, 5);
  requests_after(kPeriod);
  EXPECT_EQ(requests_after(kPeriod), 2u) << "all is well";
}

TEST_F(UpkeepTest, TriesLessAndLessOftenInVain) {
  ASSERT_EQ(requests_after(kPeriod), 1u);
  end_moved(1, 0);
  EXPECT_EQ(requests_after(kPeriod), 1u);
  EXPECT_EQ(requests_after(kPeriod), 2u);
  end_moved(2, 0);
  EXPECT_EQ(requests_after(kPeriod), 2u);
  EXPECT_EQ(requests_after(kPeriod), 2u) << "twice as long";
  EXPECT_EQ(requests_after(kPeriod), 3u);
  end_moved(3, 1);
  requests_after(kPeriod);
  EXPECT_EQ(requests_after(kPeriod), 4u) << "it has helped";
}

TEST_F(UpkeepTest, LeavesAloneWhatIsToMoveWhenTouched) {
  upkeep_->make_way(id_, true);
  EXPECT_EQ(requests_after(Milliseconds(5 * 60 * 1000)), 0u);
  EXPECT_EQ(requests_after(Milliseconds(6 * 60 * 1000)), 1u);
}

TEST_F(UpkeepTest, MakesWayForWhoMovesThemHimself) {
  ASSERT_EQ(requests_after(kPeriod), 1u);
  upkeep_->make_way(id_, false);
  EXPECT_EQ(module_.requests().at(1)->status.state,
            static_cast<uint32_t>(MEMSLUICE_REQUEST_CANCELLED));
  ASSERT_TRUE(loop_->run_once(Milliseconds(0)).ok());
  ASSERT_TRUE(migrations_->start(Redistribution{.cgroup = "/redis.slice"}).ok());
  EXPECT_EQ(requests_after(kPeriod), 2u);
  EXPECT_EQ(requests_after(kPeriod), 2u) << "somebody's runs";
  end_moved(2, 1);
  EXPECT_EQ(requests_after(kPeriod), 3u);
}

TEST_F(UpkeepTest, LivesOnWithoutTheModule) {
  module_.unload();
  EXPECT_EQ(requests_after(kPeriod), 0u);
  module_.load();
  module_.put_tenant(id_, {.placement = kThreeTwo});
  module_.fail_next("migrate", EOPNOTSUPP);
  EXPECT_EQ(requests_after(kPeriod), 0u);
  EXPECT_EQ(requests_after(Milliseconds(10 * kPeriod.count())), 1u);
}

}  // namespace
}  // namespace memsluice
