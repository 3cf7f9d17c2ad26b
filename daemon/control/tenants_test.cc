// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/tenants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "daemon/base/temporary_directory.h"
#include "daemon/host/fake_module.h"

namespace memsluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TenantsTest : public testing::Test {
 protected:
  TenantsTest() {
    host_.make_directory("/cgroup/redis.slice");
    host_.make_directory("/cgroup/machine.slice");
    host_.write("/node/has_memory", "0\n");
    host_.write("/node/node0/meminfo", "Node 0 MemTotal: 1024000 kB\n");
    host_.write("/knobs/scan_period_ms", "1000");
    paths_.cgroup_root = host_.path("/cgroup");
    paths_.nodes = host_.path("/node");
    paths_.module_knobs = host_.path("/knobs");
    restart();
  }

  static Config config_of(std::vector<TenantRule> rules) {
    Config config;
    config.tenants = std::move(rules);
    return config;
  }
  static TenantRule rule(const std::string& cgroup, uint64_t fast_limit_bytes) {
    return {cgroup, {.fast_limit = FastLimit{.bytes = fast_limit_bytes}}};
  }
  static Policy policy(uint64_t fast_limit_bytes) {
    return {
        .fast_limit_bytes = fast_limit_bytes, .promote_mib_per_s = 1024, .demote_mib_per_s = 1024};
  }

  // The daemon ends without a word, and starts again.
  void restart(Config config = {}) {
    tenants_.emplace(module_, paths_, log_, std::move(config));
    tenants_->reconcile();
  }
  uint64_t id(const std::string& path) { return Cgroups(paths_.cgroup_root).find(path)->id; }
  Origin origin(const std::string& path) { return tenants_->get(path)->origin; }

  TemporaryDirectory host_;
  Paths paths_;
  FakeModule module_;
  std::string logged_;
  Log log_{LogLevel::kInfo, [this](std::string_view line) { logged_ += line; }};
  std::optional<Tenants> tenants_;
};

TEST_F(TenantsTest, CgroupsThatMatchAreTenantsFromTheirBeginningToTheirEnd) {
  restart(config_of({rule("/machine.slice/*.scope", 10)}));
  EXPECT_THAT(module_.tenants(), IsEmpty());

  host_.make_directory("/cgroup/machine.slice/a.scope");
  const uint64_t a = id("/machine.slice/a.scope");
  tenants_->reconcile();
  EXPECT_EQ(module_.tenants(), (std::map<uint64_t, Policy>{{a, policy(10)}}));
  EXPECT_EQ(origin("/machine.slice/a.scope"), Origin::kConfig);

  // A module without tenant events does not notice the end of a cgroup.
  host_.remove("/cgroup/machine.slice/a.scope");
  tenants_->reconcile();
  EXPECT_THAT(module_.tenants(), IsEmpty());
}

TEST_F(TenantsTest, APathThatIsUsedAgainIsAnotherTenant) {
  restart(config_of({rule("/machine.slice/a.scope", 10)}));
  host_.make_directory("/cgroup/machine.slice/a.scope");
  tenants_->reconcile();
  const uint64_t first = id("/machine.slice/a.scope");
  host_.make_directory("/cgroup/machine.slice/b.scope");
  host_.remove("/cgroup/machine.slice/a.scope");
  std::filesystem::rename(host_.path("/cgroup/machine.slice/b.scope"),
                          host_.path("/cgroup/machine.slice/a.scope"));
  tenants_->reconcile();
  EXPECT_FALSE(module_.tenants().contains(first));
  EXPECT_TRUE(module_.tenants().contains(id("/machine.slice/a.scope")));
}

TEST_F(TenantsTest, AStartWhereNothingChangedChangesNothing) {
  const Config config = config_of({rule("/redis.slice", 10)});
  restart(config);
  module_.put_tenant(id("/machine.slice"), policy(5));
  const int changes = module_.changes();
  restart(config);
  tenants_->reconcile();
  EXPECT_EQ(module_.changes(), changes);
  EXPECT_EQ(origin("/redis.slice"), Origin::kConfig);
  EXPECT_EQ(origin("/machine.slice"), Origin::kModule);
}

TEST_F(TenantsTest, WhatTheApiSetStaysWhenTheDaemonIsKilled) {
  ASSERT_TRUE(tenants_->set("/redis.slice", {.fast_limit = FastLimit{.bytes = 7}}).ok());
  restart();
  EXPECT_EQ(module_.tenants().at(id("/redis.slice")), policy(7));
  EXPECT_EQ(origin("/redis.slice"), Origin::kModule);
}

TEST_F(TenantsTest, AnothersChangeOfAConfiguredTenantIsUndone) {
  restart(config_of({rule("/redis.slice", 10)}));
  module_.put_tenant(id("/redis.slice"), policy(99));
  tenants_->reconcile();
  EXPECT_EQ(module_.tenants().at(id("/redis.slice")), policy(10));
  module_.drop_tenant(id("/redis.slice"));
  tenants_->reconcile();
  EXPECT_EQ(module_.tenants().at(id("/redis.slice")), policy(10));
}

TEST_F(TenantsTest, TheModuleMayGoAndComeBack) {
  restart(config_of({rule("/redis.slice", 10)}));
  ASSERT_TRUE(tenants_->set("/machine.slice", {.fast_limit = FastLimit{.bytes = 7}}).ok());
  module_.unload();
  logged_.clear();
  tenants_->reconcile();
  tenants_->reconcile();
  EXPECT_EQ(
      logged_,
      "<3>/dev/memsluice: the module is not loaded: open: No such file or directory (load it: "
      "modprobe memsluice)\n");
  EXPECT_EQ(tenants_->list().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(tenants_->set("/redis.slice", {}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(tenants_->set("/redis.slice", {}).error().object, "/dev/memsluice");
  module_.load();
  tenants_->reconcile();
  EXPECT_EQ(module_.tenants(), (std::map<uint64_t, Policy>{{id("/redis.slice"), policy(10)},
                                                           {id("/machine.slice"), policy(7)}}));
}

TEST_F(TenantsTest, AModuleLoadedAgainBetweenTwoLooksGetsItsValuesToo) {
  Config config;
  config.module["scan_period_ms"] = {"500"};
  restart(config);
  EXPECT_EQ(*Knobs(paths_.module_knobs).read("scan_period_ms"), "500");
  module_.unload();
  module_.load();
  host_.write("/knobs/scan_period_ms", "1000");
  tenants_->reconcile();
  EXPECT_EQ(*Knobs(paths_.module_knobs).read("scan_period_ms"), "500");
}

TEST_F(TenantsTest, ASetThatRacesWithTheEndOfTheCgroupIsNoNews) {
  module_.fail_next("tenant set", ENOENT);
  restart(config_of({rule("/redis.slice", 10)}));
  EXPECT_THAT(logged_, Not(HasSubstr("<3>")));
  tenants_->reconcile();
  EXPECT_EQ(module_.tenants().size(), 1u);
}

TEST_F(TenantsTest, AFailureIsLoggedOnceAndTriedAgain) {
  for (int i = 0; i < 3; i++) module_.fail_next("tenant set", EPERM);
  restart(config_of({rule("/redis.slice", 10)}));
  tenants_->reconcile();
  tenants_->reconcile();
  const std::string complaint =
      "<3>/redis.slice: tenant set: Operation not permitted (the daemon needs CAP_SYS_ADMIN, "
      "CAP_SYS_NICE and CAP_SYS_PTRACE)\n";
  EXPECT_THAT(logged_, HasSubstr(complaint));
  EXPECT_EQ(logged_.find(complaint), logged_.rfind(complaint));
  tenants_->reconcile();
  EXPECT_THAT(logged_, HasSubstr("<6>/redis.slice: works again\n"));
  EXPECT_EQ(module_.tenants().size(), 1u);
}

TEST_F(TenantsTest, AClearThatFailsIsTriedAgain) {
  restart(config_of({rule("/redis.slice", 10)}));
  module_.fail_next("tenant clear", EPERM);
  ASSERT_TRUE(tenants_->reload({}).ok());
  EXPECT_EQ(module_.tenants().size(), 1u);
  tenants_->reconcile();
  EXPECT_THAT(module_.tenants(), IsEmpty());
}

TEST_F(TenantsTest, WhileTheModuleDoesNotAnswerNothingIsChanged) {
  restart(config_of({rule("/redis.slice", 10)}));
  const int changes = module_.changes();
  module_.fail_next("tenant list", EIO);
  tenants_->reconcile();
  EXPECT_EQ(module_.changes(), changes);
  EXPECT_THAT(logged_, HasSubstr("nothing is changed: tenant list: Input/output error"));
}

TEST_F(TenantsTest, AShareOfAnUnknownTierChangesNothing) {
  restart(config_of({{"/redis.slice", {.fast_limit = FastLimit{.percent = 50}}}}));
  EXPECT_EQ(module_.tenants().at(id("/redis.slice")), policy(500u << 20));
  host_.remove("/node");
  tenants_->reconcile();
  EXPECT_EQ(module_.tenants().at(id("/redis.slice")), policy(500u << 20));
  host_.write("/node/has_memory", "0\n");
  host_.write("/node/node0/meminfo", "Node 0 MemTotal: 2048000 kB\n");
  tenants_->reconcile();
  EXPECT_EQ(module_.tenants().at(id("/redis.slice")), policy(1000u << 20));
}

TEST_F(TenantsTest, ReloadTakesAwayWhatIsNoLongerConfigured) {
  restart(config_of({rule("/redis.slice", 10), rule("/machine.slice", 20)}));
  auto changed = tenants_->reload(config_of({rule("/machine.slice", 30)}));
  EXPECT_TRUE(*changed);
  EXPECT_EQ(module_.tenants(), (std::map<uint64_t, Policy>{{id("/machine.slice"), policy(30)}}));
  EXPECT_FALSE(*tenants_->reload(config_of({rule("/machine.slice", 30)})));
}

TEST_F(TenantsTest, AReloadWhoseValuesTheModuleRefusesLeavesEverythingAsItWas) {
  restart(config_of({rule("/redis.slice", 10)}));
  Config bad = config_of({rule("/redis.slice", 20)});
  bad.module["scan_period_ms"] = {"500"};
  bad.module["no_such"] = {"1"};
  auto reloaded = tenants_->reload(bad);
  ASSERT_FALSE(reloaded.ok());
  EXPECT_EQ(reloaded.error().object, "module.no_such");
  EXPECT_EQ(*Knobs(paths_.module_knobs).read("scan_period_ms"), "1000");
  tenants_->reconcile();
  EXPECT_EQ(module_.tenants().at(id("/redis.slice")), policy(10));
}

TEST_F(TenantsTest, SetKeepsWhatIsNotSaidAndTakesTheDefaultsForANewTenant) {
  auto set = tenants_->set("/redis.slice", {.fast_limit = FastLimit{.bytes = 7}});
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->origin, Origin::kApi);
  EXPECT_EQ(from_kernel(set->status.policy), policy(7));
  ASSERT_TRUE(tenants_->set("/redis.slice", {.promote_mib_per_s = 3}).ok());
  Policy expected = policy(7);
  expected.promote_mib_per_s = 3;
  EXPECT_EQ(module_.tenants().at(id("/redis.slice")), expected);
  tenants_->reconcile();
  EXPECT_EQ(module_.tenants().at(id("/redis.slice")), expected);
}

TEST_F(TenantsTest, SetOverridesTheConfigurationUntilItIsReloaded) {
  const Config config = config_of({rule("/redis.slice", 10)});
  restart(config);
  ASSERT_TRUE(tenants_->set("/redis.slice", {.fast_limit = FastLimit{.bytes = 7}}).ok());
  tenants_->reconcile();
  EXPECT_EQ(module_.tenants().at(id("/redis.slice")), policy(7));
  ASSERT_TRUE(tenants_->reload(config).ok());
  EXPECT_EQ(module_.tenants().at(id("/redis.slice")), policy(10));
  EXPECT_EQ(origin("/redis.slice"), Origin::kConfig);
}

TEST_F(TenantsTest, SetNamesTheCgroupThatFailed) {
  auto set = tenants_->set("/nothing.slice", {});
  EXPECT_EQ(set.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(set.error().object, "/nothing.slice");
  module_.fail_next("tenant set", EPERM);
  set = tenants_->set("/redis.slice", {});
  EXPECT_EQ(set.error().code, ErrorCode::kDenied);
  EXPECT_EQ(set.error().object, "/redis.slice");
  EXPECT_THAT(module_.tenants(), IsEmpty());
}

TEST_F(TenantsTest, ACgroupThatChargesNoMemoryIsToldFromAKernelThatCannot) {
  module_.fail_next("tenant set", EOPNOTSUPP);
  auto set = tenants_->set("/redis.slice", {});
  EXPECT_EQ(set.error().code, ErrorCode::kConflict);
  EXPECT_EQ(set.error().message, "its memory controller is off");
  host_.write("/cgroup/redis.slice/cgroup.controllers", "cpu memory pids\n");
  module_.fail_next("tenant set", EOPNOTSUPP);
  set = tenants_->set("/redis.slice", {});
  EXPECT_EQ(set.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(set.error().message, "tenant set: Operation not supported");
}

TEST_F(TenantsTest, ClearTakesAwayWhatTheApiOrOthersSet) {
  ASSERT_TRUE(tenants_->set("/redis.slice", {}).ok());
  module_.put_tenant(id("/machine.slice"), policy(1));
  EXPECT_TRUE(tenants_->clear("/redis.slice").ok());
  EXPECT_TRUE(tenants_->clear("/machine.slice").ok());
  tenants_->reconcile();
  EXPECT_THAT(module_.tenants(), IsEmpty());
  auto again = tenants_->clear("/redis.slice");
  EXPECT_EQ(again.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(again.error().message, "is no tenant");
}

TEST_F(TenantsTest, ClearLeadsBackToTheConfigurationButNotPastIt) {
  restart(config_of({rule("/redis.*", 10)}));
  ASSERT_TRUE(tenants_->set("/redis.slice", {.fast_limit = FastLimit{.bytes = 7}}).ok());
  ASSERT_TRUE(tenants_->clear("/redis.slice").ok());
  EXPECT_EQ(module_.tenants().at(id("/redis.slice")), policy(10));
  auto again = tenants_->clear("/redis.slice");
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_EQ(again.error().message, "the configuration makes it a tenant (\"/redis.*\")");
}

TEST_F(TenantsTest, ListShowsEveryTenantWithItsPathAndMemory) {
  host_.write("/cgroup/redis.slice/memory.current", "4096\n");
  ASSERT_TRUE(tenants_->set("/redis.slice", {}).ok());
  module_.put_tenant(id("/machine.slice"), policy(1));
  module_.put_tenant(123456789, policy(1));  // its cgroup is gone
  auto views = tenants_->list();
  ASSERT_TRUE(views.ok());
  ASSERT_EQ(views->size(), 2u);
  EXPECT_EQ((*views)[0].cgroup.path, "/machine.slice");
  EXPECT_EQ((*views)[0].origin, Origin::kModule);
  EXPECT_EQ((*views)[1].cgroup.path, "/redis.slice");
  EXPECT_EQ((*views)[1].memory.current_bytes, 4096u);
}

}  // namespace
}  // namespace memsluice
