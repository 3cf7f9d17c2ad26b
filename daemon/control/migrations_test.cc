// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/migrations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "daemon/base/temporary_directory.h"
#include "daemon/host/fake_module.h"

namespace memsluice {
namespace {

class MigrationsTest : public testing::Test {
 protected:
  MigrationsTest() {
    host_.make_directory("/cgroup/redis.slice");
    host_.write("/node/has_memory", "0-1\n");
    host_.write("/node/node0/meminfo", "");
    host_.write("/node/node1/meminfo", "");
    paths_.cgroup_root = host_.path("/cgroup");
    paths_.nodes = host_.path("/node");
    migrations_.emplace(module_, paths_, *loop_, log_);
  }
  Result<RequestView> start_own() {
    return migrations_->start(ProcessMigration{.pid = ::getpid(), .target_node = 1});
  }
  void turn() { ASSERT_TRUE(loop_->run_once(Milliseconds(0)).ok()); }
  static std::string complaint(const Result<RequestView>& view) {
    return view.ok() ? "none" : view.error().describe();
  }

  TemporaryDirectory host_;
  Paths paths_;
  FakeModule module_;
  SystemClock clock_;
  Log log_{LogLevel::kError};
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  std::optional<Migrations> migrations_;
};

TEST_F(MigrationsTest, RunsUntilTheModuleSaysItHasEnded) {
  auto started = start_own();
  ASSERT_TRUE(started.ok());
  EXPECT_EQ(started->object, "pid " + std::to_string(::getpid()));
  EXPECT_FALSE(started->has_ended());
  EXPECT_EQ(started->status.total_pages, 100u);
  turn();
  EXPECT_FALSE(migrations_->get(started->id)->has_ended());

  module_.end_request(1, MEMSLUICE_REQUEST_DONE);
  turn();
  auto ended = migrations_->get(started->id);
  EXPECT_EQ(ended->status.state, static_cast<uint32_t>(MEMSLUICE_REQUEST_DONE));
  EXPECT_EQ(ended->status.seen_pages, 100u);
  EXPECT_FALSE(module_.requests().at(1)->open) << "an open descriptor keeps the module from going";
}

TEST_F(MigrationsTest, NamesAllOfAProcessOrARange) {
  ASSERT_TRUE(start_own().ok());
  const Migration& all = module_.requests().at(1)->migration;
  EXPECT_EQ(all.address, 0u);
  EXPECT_GE(all.length_bytes, uint64_t{1} << 57);
  EXPECT_EQ(all.length_bytes % 65536, 0u);
  ASSERT_TRUE(migrations_
                  ->start(ProcessMigration{.pid = ::getpid(),
                                           .address = 65536,
                                           .length_bytes = 131072,
                                           .target_node = 0,
                                           .all_mappings = true})
                  .ok());
  const Migration& range = module_.requests().at(2)->migration;
  EXPECT_EQ(range.address, 65536u);
  EXPECT_EQ(range.length_bytes, 131072u);
  EXPECT_TRUE(range.all_mappings);
  EXPECT_EQ(range.source_node, -1);
}

TEST_F(MigrationsTest, NamesACgroupByItsId) {
  auto started = migrations_->start(TenantMigration{"/redis.slice", 0, 1});
  ASSERT_TRUE(started.ok());
  const Migration& migration = module_.requests().at(1)->migration;
  EXPECT_EQ(migration.pidfd, -1);
  EXPECT_EQ(migration.cgroup_id, Cgroups(paths_.cgroup_root).find("/redis.slice")->id);
  EXPECT_EQ(migration.source_node, 0);
  EXPECT_EQ(migration.target_node, 1);
}

TEST_F(MigrationsTest, BringsATenantToItsChannels) {
  const uint64_t id = Cgroups(paths_.cgroup_root).find("/redis.slice")->id;
  EXPECT_EQ(complaint(migrations_->start(Redistribution{.cgroup = "/redis.slice"})),
            "/redis.slice: is no tenant (memsluice tenant list shows them, memsluice tenant set "
            "makes one)");
  module_.put_tenant(id, {});
  EXPECT_EQ(complaint(migrations_->start(Redistribution{.cgroup = "/redis.slice"})),
            "/redis.slice: has no channels (memsluice tenant set /redis.slice --channels gives it "
            "some)");
  module_.put_tenant(id, {.placement = {.channels = {{1, 1}}}});
  EXPECT_EQ(
      complaint(migrations_->start(Redistribution{.cgroup = "/redis.slice", .source_node = 7})),
      "node 7: there is no such node with memory (there are: 0, 1)");
  ASSERT_TRUE(module_.requests().empty());

  auto started = migrations_->start(
      Redistribution{.cgroup = "/redis.slice", .source_node = 0, .mib_per_s = 5});
  ASSERT_TRUE(started.ok()) << complaint(started);
  EXPECT_EQ(started->kind, MEMSLUICE_MIGRATE_TENANT_PLACED);
  EXPECT_EQ(started->target_node, std::nullopt);
  const Migration& all = module_.requests().at(1)->migration;
  EXPECT_EQ(all.cgroup_id, id);
  EXPECT_EQ(all.source_node, 0);
  EXPECT_EQ(all.target_node, -1);
  EXPECT_EQ(all.mib_per_s, 5u);
  EXPECT_FALSE(all.on_touch);
  started = migrations_->start(Redistribution{.cgroup = "/redis.slice", .on_touch = true});
  ASSERT_TRUE(started.ok()) << complaint(started);
  EXPECT_TRUE(started->on_touch);
  EXPECT_TRUE(module_.requests().at(2)->migration.on_touch);
  EXPECT_EQ(module_.requests().at(2)->migration.source_node, -1);
}

TEST_F(MigrationsTest, RefusesWhatCannotBe) {
  const int own = ::getpid();
  EXPECT_EQ(complaint(migrations_->start(ProcessMigration{.pid = own, .target_node = 7})),
            "node 7: there is no such node with memory (there are: 0, 1)");
  EXPECT_EQ(complaint(migrations_->start(ProcessMigration{.pid = 1 << 30, .target_node = 1})),
            "pid 1073741824: no such process");
  EXPECT_EQ(
      complaint(migrations_->start(ProcessMigration{.pid = own, .address = 0, .target_node = 1})),
      "length_bytes: is missing: a range needs both, all of the process neither");
  EXPECT_THAT(complaint(migrations_->start(ProcessMigration{
                  .pid = own, .address = 1, .length_bytes = 65536, .target_node = 1})),
              testing::StartsWith("address: must be a multiple of "));
  EXPECT_THAT(complaint(migrations_->start(
                  ProcessMigration{.pid = own, .address = 0, .length_bytes = 0, .target_node = 1})),
              testing::StartsWith("length_bytes: must be a multiple of "));
  EXPECT_EQ(
      complaint(migrations_->start(ProcessMigration{
          .pid = own, .address = ~uint64_t{0} << 16, .length_bytes = 1 << 20, .target_node = 1})),
      "length_bytes: leads past the end of the address space");
  EXPECT_EQ(complaint(migrations_->start(TenantMigration{"/redis.slice", 1, 1})),
            "target_node: is the source node as well");
  EXPECT_EQ(migrations_->start(TenantMigration{"/nothing", 0, 1}).error().code,
            ErrorCode::kNotFound);
  EXPECT_TRUE(module_.requests().empty());
}

TEST_F(MigrationsTest, TellsWhatTheModuleRefuses) {
  module_.fail_next("migrate", EACCES);
  auto refused = start_own();
  EXPECT_EQ(refused.error().code, ErrorCode::kDenied);
  EXPECT_EQ(refused.error().object, "pid " + std::to_string(::getpid()));
  EXPECT_THAT(refused.error().hint, testing::HasSubstr("cpuset"));
  module_.unload();
  EXPECT_EQ(start_own().error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(migrations_->list().empty());
}

TEST_F(MigrationsTest, AFailedRequestSaysWhy) {
  ASSERT_TRUE(start_own().ok());
  module_.end_request(1, MEMSLUICE_REQUEST_FAILED, ENOMEM);
  turn();
  auto failed = migrations_->get(1);
  ASSERT_TRUE(failed->error.has_value());
  EXPECT_EQ(failed->error->message, "migrate: Cannot allocate memory");
}

TEST_F(MigrationsTest, CancelEndsIt) {
  ASSERT_TRUE(start_own().ok());
  auto cancelled = migrations_->cancel(1);
  ASSERT_TRUE(cancelled.ok());
  EXPECT_EQ(cancelled->status.state, static_cast<uint32_t>(MEMSLUICE_REQUEST_CANCELLED));
  turn();
  EXPECT_TRUE(migrations_->cancel(1).ok()) << "what has ended stays as it is";
  EXPECT_EQ(migrations_->cancel(2).error().object, "request 2");
}

TEST_F(MigrationsTest, WakesThoseWhoStillWait) {
  ASSERT_TRUE(start_own().ok());
  int calls = 0;
  auto first = migrations_->when_ended(1, [&] { calls += 1; });
  auto second = migrations_->when_ended(1, [&] { calls += 10; });
  second.reset();
  module_.end_request(1, MEMSLUICE_REQUEST_DONE);
  turn();
  turn();
  EXPECT_EQ(calls, 1);
}

TEST_F(MigrationsTest, KeepsTheLastThatEndedAndThoseThatRun) {
  ASSERT_TRUE(start_own().ok());
  for (uint64_t id = 2; id <= Migrations::kEndedKept + 3; id++) {
    ASSERT_TRUE(start_own().ok());
    module_.end_request(id, MEMSLUICE_REQUEST_DONE);
    turn();
  }
  EXPECT_EQ(migrations_->list().size(), Migrations::kEndedKept + 1);
  EXPECT_TRUE(migrations_->get(1).ok());
  EXPECT_EQ(migrations_->get(3).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(migrations_->get(4).ok());
}

TEST_F(MigrationsTest, OnlySoManyRunAtATime) {
  for (size_t i = 0; i < Migrations::kRunningMax; i++) ASSERT_TRUE(start_own().ok());
  EXPECT_EQ(start_own().error().code, ErrorCode::kConflict);
  module_.end_request(1, MEMSLUICE_REQUEST_DONE);
  turn();
  EXPECT_TRUE(start_own().ok());
}

}  // namespace
}  // namespace memsluice
