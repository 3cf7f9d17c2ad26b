// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/desired_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace memsluice {
namespace {

using testing::ElementsAre;

Policy policy(uint64_t bytes) {
  return {.fast_limit_bytes = bytes};
}

TEST(FindRule, ThePathItselfGoesBeforeThePatternsAndLaterPatternsBeforeEarlier) {
  Config config;
  config.tenants = {{"/a/*"}, {"/a/b"}, {"/a/?"}, {"/*/bb"}};
  EXPECT_EQ(find_rule(config, "/a/b")->cgroup, "/a/b");
  EXPECT_EQ(find_rule(config, "/a/c")->cgroup, "/a/?");
  EXPECT_EQ(find_rule(config, "/a/bb")->cgroup, "/*/bb");
  EXPECT_EQ(find_rule(config, "/a/cc")->cgroup, "/a/*");
  EXPECT_EQ(find_rule(config, "/a"), nullptr);
}

TEST(ConfiguredPolicies, FillInTheDefaults) {
  Config config;
  config.defaults.promote_mib_per_s = 5;
  config.tenants = {{"/a", {.fast_limit = FastLimit{.percent = 50}}}};
  Policies policies = configured_policies(config, {{"/a", 1}, {"/b", 2}}, 100u << 20);
  ASSERT_EQ(policies.size(), 1u);
  EXPECT_EQ(policies[1].policy, (Policy{.tiering = true,
                                        .fast_limit_bytes = 50u << 20,
                                        .promote_mib_per_s = 5,
                                        .demote_mib_per_s = 1024}));
}

TEST(MakePlan, SetsWhatIsMissingOrDifferent) {
  Plan plan = make_plan({{1, {"/a", policy(10)}}, {2, {"/b", policy(20)}}, {3, {"/c", policy(30)}}},
                        {}, {{1, policy(10)}, {2, policy(99)}}, {});
  EXPECT_THAT(plan.actions, ElementsAre(Action{Action::Kind::kSet, 2, "/b", policy(20)},
                                        Action{Action::Kind::kSet, 3, "/c", policy(30)}));
  EXPECT_EQ(plan.origins, (std::map<uint64_t, Origin>{
                              {1, Origin::kConfig}, {2, Origin::kConfig}, {3, Origin::kConfig}}));
}

TEST(MakePlan, WhatTheApiSetGoesBeforeTheConfiguration) {
  Plan plan =
      make_plan({{1, {"/a", policy(10)}}}, {{1, {"/a", policy(20)}}}, {{1, policy(10)}}, {1});
  EXPECT_THAT(plan.actions, ElementsAre(Action{Action::Kind::kSet, 1, "/a", policy(20)}));
  EXPECT_EQ(plan.origins.at(1), Origin::kApi);
}

TEST(MakePlan, ClearsOnlyWhatWasOurs) {
  Plan plan = make_plan({}, {}, {{1, policy(1)}, {2, policy(2)}}, {2, 3});
  EXPECT_THAT(plan.actions, ElementsAre(Action{.kind = Action::Kind::kClear, .cgroup_id = 2}));
  EXPECT_EQ(plan.origins, (std::map<uint64_t, Origin>{{1, Origin::kModule}}));
}

struct World {
  Policies configured;
  Policies set_by_api;
  std::map<uint64_t, Policy> in_module;
  std::set<uint64_t> ours;
};

std::map<uint64_t, Policy> any_policies() {
  auto pairs = rc::gen::container<std::vector<std::pair<uint64_t, uint64_t>>>(
      rc::gen::pair(rc::gen::inRange<uint64_t>(1, 8), rc::gen::inRange<uint64_t>(0, 3)));
  std::map<uint64_t, Policy> policies;
  for (auto [id, limit] : *pairs) policies[id] = policy(limit);
  return policies;
}

World any_world() {
  World world;
  for (const auto& [id, wanted] : any_policies()) world.configured[id] = {"/c", wanted};
  for (const auto& [id, wanted] : any_policies()) world.set_by_api[id] = {"/a", wanted};
  world.in_module = any_policies();
  for (const auto& [id, unused] : any_policies()) world.ours.insert(id);
  return world;
}

Plan plan_for(const World& world) {
  return make_plan(world.configured, world.set_by_api, world.in_module, world.ours);
}

void carry_out(const Plan& plan, std::map<uint64_t, Policy>& module) {
  for (const Action& action : plan.actions) {
    if (action.kind == Action::Kind::kClear)
      RC_ASSERT(module.erase(action.cgroup_id) == 1u);
    else
      module[action.cgroup_id] = action.policy;
  }
}

RC_GTEST_PROP(MakePlanProperty, CarriedOutOnceItLeavesNothingToDo, ()) {
  World world = any_world();
  carry_out(plan_for(world), world.in_module);
  RC_ASSERT(plan_for(world).actions.empty());
}

RC_GTEST_PROP(MakePlanProperty, TheModuleThenHasWhatIsWantedAndWhatIsOthers, ()) {
  World world = any_world();
  std::map<uint64_t, Policy> expected;
  for (const auto& [id, present] : world.in_module)
    if (!world.ours.contains(id)) expected[id] = present;
  for (const auto& [id, named] : world.configured) expected[id] = named.policy;
  for (const auto& [id, named] : world.set_by_api) expected[id] = named.policy;
  Plan plan = plan_for(world);
  carry_out(plan, world.in_module);
  RC_ASSERT(world.in_module == expected);
  RC_ASSERT(plan.origins.size() == expected.size());
}

RC_GTEST_PROP(MakePlanProperty, ADaemonThatStartsAgainChangesNothing, ()) {
  World world = any_world();
  carry_out(plan_for(world), world.in_module);
  // What is lost when it is killed: what the API set, and the knowledge of what was ours.
  for (const auto& [id, named] : world.set_by_api) world.configured.erase(id);
  world.set_by_api.clear();
  world.ours.clear();
  Plan plan = plan_for(world);
  RC_ASSERT(plan.actions.empty());
  RC_ASSERT(plan.origins.size() == world.in_module.size());
}

RC_GTEST_PROP(MakePlanProperty, NoTenantIsTouchedTwiceNorSetToWhatItHas, ()) {
  World world = any_world();
  std::set<uint64_t> touched;
  for (const Action& action : plan_for(world).actions) {
    RC_ASSERT(touched.insert(action.cgroup_id).second);
    auto present = world.in_module.find(action.cgroup_id);
    if (action.kind == Action::Kind::kSet && present != world.in_module.end())
      RC_ASSERT(present->second != action.policy);
  }
}

}  // namespace
}  // namespace memsluice
