// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/base/temporary_directory.h"

namespace memsluice {
namespace {

using testing::ElementsAre;

TEST(Files, AreReadAndWrittenWhole) {
  TemporaryDirectory directory;
  directory.write("/big", std::string(10000, 'x'));
  EXPECT_EQ(read_file(AT_FDCWD, directory.path("/big"))->size(), 10000u);
  directory.write("/value", "old\n");
  ASSERT_TRUE(write_file(AT_FDCWD, directory.path("/value"), "new\n").ok());
  EXPECT_EQ(*read_file(AT_FDCWD, directory.path("/value")), "new\n");
}

TEST(Files, AnErrorNamesThePath) {
  auto text = read_file(AT_FDCWD, "/nonexistent/file");
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().describe(), "/nonexistent/file: open: No such file or directory");
}

TEST(ListDirectory, SortsAndCanBeAskedTwice) {
  TemporaryDirectory directory;
  directory.write("/b", "");
  directory.make_directory("/a");
  auto opened = open_directory(AT_FDCWD, directory.path());
  ASSERT_TRUE(opened.ok());
  EXPECT_THAT(*list_directory(*opened), ElementsAre("a", "b"));
  EXPECT_THAT(*list_directory(*opened), ElementsAre("a", "b"));
}

TEST(ParseIdList, ReadsTheKernelsLists) {
  EXPECT_THAT(parse_id_list("0-2,5\n"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(parse_id_list("7"), ElementsAre(7));
  EXPECT_THAT(parse_id_list("\n"), ElementsAre());
  EXPECT_THAT(parse_id_list("1,x"), ElementsAre(1));
  EXPECT_THAT(parse_id_list("0-99999999"), ElementsAre());
}

TEST(NumberAfter, FindsTheNumber) {
  EXPECT_EQ(number_after("Node 0 MemTotal:   2048 kB\n", "MemTotal:"), 2048u);
  EXPECT_EQ(number_after("x", "MemTotal:"), 0u);
  EXPECT_EQ(number_after("MemTotal:", "MemTotal:"), 0u);
}

TEST(Trimmed, TakesSpaceAway) {
  EXPECT_EQ(trimmed(" a b\n"), "a b");
  EXPECT_EQ(trimmed(" \n"), "");
}

TEST(ReplaceFile, GivesThePathAllOfTheContentAndItsMode) {
  TemporaryDirectory directory;
  const std::string path = directory.path("/x.prom");
  directory.write("/x.prom", "old and long");
  directory.write("/x.prom.new", "of a daemon that was killed");
  ASSERT_TRUE(replace_file(path, "new", 0644).ok());
  EXPECT_EQ(*read_file(AT_FDCWD, path), "new");
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0644));
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  EXPECT_EQ(replace_file(directory.path("/none/x"), "new", 0644).error().code,
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace memsluice
