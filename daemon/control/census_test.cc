// SPDX-License-Identifier: GPL-2.0
#include "daemon/control/census.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "daemon/base/temporary_directory.h"
#include "daemon/host/fake_module.h"

namespace memsluice {
namespace {

memsluice_census_row row(int node, uint64_t cgroup_id, uint64_t tenant_id, uint64_t anon_pages) {
  memsluice_census_row row = {};
  row.node = node;
  row.cgroup_id = cgroup_id;
  row.tenant_id = tenant_id;
  row.pages[MEMSLUICE_FRAMES_ANON] = anon_pages;
  row.held_pages[MEMSLUICE_FRAMES_ANON] = anon_pages / 10;
  return row;
}

const std::vector<Cgroup> kCgroups = {{"/", 1}, {"/a", 7}, {"/a/b", 8}};

TEST(CensusLines, HaveTheirPaths) {
  const auto lines = with_paths({row(0, 0, 0, 1), row(0, 8, 7, 2), row(0, 99, 7, 3)}, kCgroups);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].cgroup, "") << "nobody";
  EXPECT_EQ(lines[1].cgroup, "/a/b");
  EXPECT_EQ(lines[1].tenant, "/a");
  EXPECT_EQ(lines[2].cgroup, "") << "it has been removed";
  EXPECT_EQ(lines[2].tenant, "/a");
}

TEST(CensusLines, AreAddedUpByTenant) {
  const auto tenants = by_tenant(with_paths({row(0, 0, 0, 100), row(0, 1, 0, 10), row(0, 7, 7, 20),
                                             row(0, 8, 7, 30), row(1, 8, 7, 40), row(1, 99, 7, 50)},
                                            kCgroups));
  ASSERT_EQ(tenants.size(), 3u);
  EXPECT_EQ(tenants[0].cgroup, "/a");
  EXPECT_EQ(tenants[0].row.cgroup_id, 7u);
  EXPECT_EQ(tenants[0].row.pages[MEMSLUICE_FRAMES_ANON], 50u);
  EXPECT_EQ(tenants[0].row.held_pages[MEMSLUICE_FRAMES_ANON], 5u);
  EXPECT_EQ(tenants[1].cgroup, "");
  EXPECT_EQ(tenants[1].row.cgroup_id, 0u);
  EXPECT_EQ(tenants[1].row.pages[MEMSLUICE_FRAMES_ANON], 110u);
  EXPECT_EQ(tenants[2].row.node, 1);
  EXPECT_EQ(tenants[2].row.pages[MEMSLUICE_FRAMES_ANON], 90u);
  EXPECT_TRUE(by_tenant({}).empty());
}

class CensusTest : public testing::Test {
 protected:
  Result<std::vector<CensusLine>> take(std::optional<int> node) {
    std::optional<Result<std::vector<CensusLine>>> answer;
    auto begun = census_->take(node, [&](const auto& result) { answer = result; });
    if (!begun.ok()) return begun.error();
    while (census_->busy()) EXPECT_TRUE(loop_->run_once(Milliseconds(100)).ok());
    return answer.value_or(Error{.message = "never answered"});
  }

  TemporaryDirectory host_;
  FakeModule module_;
  SystemClock clock_;
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  std::unique_ptr<Census> census_ = *Census::create(module_, host_.path("/cgroup"), *loop_);
};

TEST_F(CensusTest, NamesCgroups) {
  host_.make_directory("/cgroup/redis.slice");
  const auto id = Cgroups(host_.path("/cgroup")).find("/redis.slice")->id;
  module_.put_census({row(0, id, 0, 5), row(1, id, 0, 6)});
  auto lines = take({});
  ASSERT_TRUE(lines.ok());
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ(lines->at(0).cgroup, "/redis.slice");
  EXPECT_EQ(take(1)->size(), 1u);
}

TEST_F(CensusTest, TellsErrors) {
  module_.fail_next("census", ENODEV);
  auto error = take(3).error();
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.object, "node 3");
  module_.fail_next("census", ENOTTY);
  EXPECT_THAT(take({}).error().hint, testing::HasSubstr("older than this daemon"));
  module_.unload();
  EXPECT_EQ(take({}).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace memsluice
