// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/cgroups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/base/temporary_directory.h"

namespace memsluice {
namespace {

using testing::ElementsAre;
using testing::Pair;

class CgroupsTest : public testing::Test {
 protected:
  CgroupsTest() {
    for (const char* path : {"/redis.slice", "/machine.slice/a.scope", "/machine.slice/b.scope",
                             "/machine.slice/b.scope/c.scope", "/machine.slice/d.service",
                             "/system.slice/x\\x2dy.service"})
      tree_.make_directory(path);
    tree_.write("/machine.slice/file.scope", "no directory");
  }
  std::vector<std::string> match(const std::string& pattern) const {
    std::vector<std::string> paths;
    for (const Cgroup& cgroup : cgroups_.match(pattern)) paths.push_back(cgroup.path);
    return paths;
  }

  TemporaryDirectory tree_;
  Cgroups cgroups_{tree_.path()};
};

TEST_F(CgroupsTest, PatternsMatchComponentByComponent) {
  EXPECT_THAT(match("/redis.slice"), ElementsAre("/redis.slice"));
  EXPECT_THAT(match("/machine.slice/*.scope"),
              ElementsAre("/machine.slice/a.scope", "/machine.slice/b.scope"));
  EXPECT_THAT(match("/*/b.scope/?.scope"), ElementsAre("/machine.slice/b.scope/c.scope"));
  EXPECT_THAT(match("/machine.slice/[ab].scope"),
              ElementsAre("/machine.slice/a.scope", "/machine.slice/b.scope"));
  EXPECT_THAT(match("/system.slice/x\\x2dy.service"), ElementsAre("/system.slice/x\\x2dy.service"));
  EXPECT_THAT(match("/system.slice/*\\x2d*"), ElementsAre("/system.slice/x\\x2dy.service"));
  EXPECT_THAT(match("/nothing/*"), ElementsAre());
  EXPECT_THAT(match("/"), ElementsAre("/"));
}

TEST_F(CgroupsTest, MatchingAPathAgreesWithWalkingTheTree) {
  for (const char* pattern : {"/redis.slice", "/machine.slice/*.scope", "/*/*", "/*",
                              "/*/b.scope/*", "/system.slice/x\\x2dy.service", "/"}) {
    std::vector<std::string> by_path;
    for (const Cgroup& cgroup : cgroups_.all())
      if (glob_matches(pattern, cgroup.path)) by_path.push_back(cgroup.path);
    EXPECT_EQ(match(pattern), by_path) << pattern;
  }
}

TEST_F(CgroupsTest, AllIsTheWholeTree) {
  EXPECT_EQ(cgroups_.all().size(), 9u);
  EXPECT_EQ(cgroups_.all().front().path, "/");
}

TEST_F(CgroupsTest, FindsByPath) {
  auto found = cgroups_.find("/machine.slice/a.scope");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, cgroups_.match("/machine.slice/a.scope").front());
  auto gone = cgroups_.find("/machine.slice/z.scope");
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(gone.error().describe(),
            "/machine.slice/z.scope: no such cgroup (systemd-cgls lists them)");
}

TEST_F(CgroupsTest, PathsDoNotLeadOutOfTheTree) {
  std::filesystem::create_directory_symlink("/", tree_.path("/link"));
  EXPECT_FALSE(cgroups_.open("/link").ok());
  EXPECT_FALSE(cgroups_.open("/link/tmp").ok());
  for (const auto& [path, message] :
       std::map<std::string, std::string>{{"", "a cgroup begins with a slash"},
                                          {"a", "a cgroup begins with a slash"},
                                          {"/a/", "ends with a slash"},
                                          {"//a", "has an empty component"},
                                          {"/a/../..", "has a component . or .."},
                                          {"/./a", "has a component . or .."},
                                          {std::string("/a\0b", 4), "has a NUL in it"},
                                          {"/" + std::string(5000, 'a'), "is too long"}}) {
    auto opened = cgroups_.open(path);
    ASSERT_FALSE(opened.ok()) << path;
    EXPECT_EQ(opened.error().code, ErrorCode::kBadRequest);
    EXPECT_EQ(opened.error().message, message);
  }
}

TEST_F(CgroupsTest, MemoryAddsUpByNode) {
  tree_.write("/redis.slice/memory.current", "12288\n");
  tree_.write(
      "/redis.slice/memory.numa_stat",
      "anon N0=4096 N1=8192\nfile N0=1 N1=2\nkernel_stack N0=100 N1=100\nshmem N0=1 N1=1\n");
  CgroupMemory memory = Cgroups::memory(*cgroups_.open("/redis.slice"));
  EXPECT_EQ(memory.current_bytes, 12288u);
  EXPECT_THAT(memory.node_bytes, ElementsAre(Pair(0, 4097u), Pair(1, 8194u)));
}

TEST_F(CgroupsTest, MemoryIsEmptyWhereTheKernelDoesNotSay) {
  CgroupMemory memory = Cgroups::memory(*cgroups_.open("/"));
  EXPECT_EQ(memory.current_bytes, std::nullopt);
  EXPECT_TRUE(memory.node_bytes.empty());
}

TEST(Cgroups, ATreeThatIsNotThereHasNone) {
  Cgroups cgroups("/nonexistent");
  EXPECT_TRUE(cgroups.all().empty());
  EXPECT_FALSE(cgroups.open("/").ok());
}

}  // namespace
}  // namespace memsluice
