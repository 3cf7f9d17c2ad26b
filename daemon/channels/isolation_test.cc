// SPDX-License-Identifier: GPL-2.0
#include "daemon/channels/isolation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace memsluice {
namespace {

using Tenants = std::map<std::string, Nodes>;

const Nodes kAll = {0, 1, 2, 3};
const Tenants kTwo = {{"/a.slice/db", {1}}, {"/b.slice", {2, 3}}};

std::vector<CpusetWrite> plan(const CpusetState& state, const Nodes& exclusive = {1, 2, 3},
                              const Tenants& tenants = kTwo) {
  return plan_isolation({state}, tenants, exclusive, kAll);
}

TEST(Isolation, NodesAreWrittenAsTheKernelWritesThem) {
  EXPECT_EQ(format_nodes({}), "");
  EXPECT_EQ(format_nodes({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

TEST(Isolation, ChildrenOfTheRootAndOfCgroupsAboveTenantsAreTold) {
  EXPECT_EQ(cgroups_above(kTwo), (std::vector<std::string>{"/", "/a.slice"}));
  EXPECT_EQ(cgroups_above({{"/a/b/c", {1}}}), (std::vector<std::string>{"/", "/a", "/a/b"}));
  EXPECT_EQ(cgroups_above({}), std::vector<std::string>{"/"});
}

TEST(Isolation, EachMayUseWhatIsNobodysAndItsOwn) {
  const auto allowed = [](const char* path) { return allowed_nodes(path, kTwo, {1, 2, 3}, kAll); };
  EXPECT_EQ(allowed("/a.slice"), (Nodes{0, 1})) << "above a tenant";
  EXPECT_EQ(allowed("/a.slice/db"), (Nodes{0, 1}));
  EXPECT_EQ(allowed("/a.slice/db/worker"), (Nodes{0, 1}));
  EXPECT_EQ(allowed("/a.slice/dbx"), (Nodes{0}));
  EXPECT_EQ(allowed("/b.slice"), (Nodes{0, 2, 3}));
  EXPECT_EQ(allowed("/system.slice"), (Nodes{0}));
  EXPECT_EQ(allowed_nodes("/a.slice/db", kTwo, {3}, kAll), (Nodes{0, 1, 2}));
}

TEST(Isolation, WhatNobodyHasSetIsSetAndKept) {
  const CpusetWrite write = {"/system.slice", "0", CpusetNote{"", "0"}};
  EXPECT_EQ(plan({"/system.slice", ""}), std::vector{write});
  EXPECT_TRUE(plan({"/system.slice", "0", write.note}).empty());
  EXPECT_EQ(plan({"/system.slice", "0-3", write.note}),
            (std::vector{CpusetWrite{"/system.slice", "0", CpusetNote{"0-3", "0"}}}))
      << "somebody has set it meanwhile";
}

TEST(Isolation, ATenantsNewChannelIsAllowedAtOnce) {
  const CpusetNote note = {"", "0,2-3"};
  EXPECT_EQ(plan({"/b.slice", "0,2-3", note}, {1, 2, 3}, {{"/b.slice", {1, 2, 3}}}),
            (std::vector{CpusetWrite{"/b.slice", "", std::nullopt}}));
  EXPECT_EQ(plan({"/b.slice", "0,2-3", note}, {1, 2, 3}, {{"/b.slice", {1}}}),
            (std::vector{CpusetWrite{"/b.slice", "0-1", CpusetNote{"", "0-1"}}}));
}

TEST(Isolation, AnotherOnesChoiceIsMadeSmallerOnlyAndGivenBack) {
  EXPECT_TRUE(plan({"/system.slice", "0"}).empty());
  EXPECT_EQ(plan({"/system.slice", "0-1"}),
            (std::vector{CpusetWrite{"/system.slice", "0", CpusetNote{"0-1", "0"}}}));
  EXPECT_EQ(plan({"/system.slice", "1"}),
            (std::vector{CpusetWrite{"/system.slice", "0", CpusetNote{"1", "0"}}}))
      << "none would be left";
  EXPECT_EQ(plan({"/system.slice", "0", CpusetNote{"0-1", "0"}}, {}),
            (std::vector{CpusetWrite{"/system.slice", "0-1", std::nullopt}}));
}

TEST(Isolation, NothingIsDoneWithoutExclusiveNodes) {
  EXPECT_TRUE(plan({"/system.slice", ""}, {}).empty());
  EXPECT_TRUE(plan({"/system.slice", "1-2"}, {}).empty());
}

TEST(Isolation, WhereAllIsExclusiveNobodyIsLeftWithoutMemory) {
  EXPECT_TRUE(plan({"/system.slice", ""}, kAll).empty());
}

// What is carried out is settled: the next look finds nothing to do.
RC_GTEST_PROP(Isolation, Settles, ()) {
  const auto some_nodes = [] {
    const int bits = *rc::gen::inRange(0, 16);
    Nodes nodes;
    for (int node = 0; node < 4; node++)
      if (bits >> node & 1) nodes.insert(node);
    return nodes;
  };
  const std::vector<std::string> paths = {"/a", "/b", "/a/x", "/a/y", "/a/x/z"};
  Tenants tenants;
  for (const std::string& path : paths)
    if (auto nodes = some_nodes(); !nodes.empty()) tenants[path] = nodes;
  const auto exclusive = some_nodes();
  CpusetState state = {*rc::gen::elementOf(paths), format_nodes(some_nodes())};
  const std::string before = state.mems;
  for (int round = 0; round < 2; round++) {
    const auto writes = plan(state, exclusive, tenants);
    RC_ASSERT(writes.size() <= (round == 0 ? 1u : 0u));
    for (const CpusetWrite& write : writes) {
      state.mems = write.mems;
      state.note = write.note;
    }
  }
  for (const CpusetWrite& write : plan(state, {}, tenants)) state.mems = write.mems;
  RC_ASSERT(state.mems == before);
}

}  // namespace
}  // namespace memsluice
