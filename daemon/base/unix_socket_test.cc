// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/unix_socket.h"

#include <gtest/gtest.h>

#include "daemon/base/temporary_directory.h"

namespace memsluice {
namespace {

TEST(UnixSocket, TakesOverADeadSocketOnly) {
  TemporaryDirectory directory;
  const std::string path = directory.path("/api");
  auto first = listen_at(path, 0666);
  ASSERT_TRUE(first.ok());
  auto second = listen_at(path, 0666);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().describe(), path + ": somebody listens there already");
  EXPECT_TRUE(connect_to(path).ok());
  first->reset();
  EXPECT_EQ(connect_to(path).error().message, "connect: Connection refused");
  EXPECT_TRUE(listen_at(path, 0666).ok());
}

TEST(UnixSocket, GivesItsMode) {
  TemporaryDirectory directory;
  auto listening = listen_at(directory.path("/api"), 0600);
  struct stat status;
  ASSERT_EQ(stat(directory.path("/api").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(UnixSocket, SaysWhatIsWrongWithAPath) {
  TemporaryDirectory directory;
  directory.write("/file", "");
  EXPECT_EQ(listen_at(directory.path("/file"), 0600).error().message, "is there and is no socket");
  EXPECT_FALSE(listen_at("/" + std::string(200, 'x'), 0600).ok());
  EXPECT_FALSE(connect_to("").ok());
  EXPECT_EQ(listen_at(directory.path("/none/api"), 0600).error().message,
            "bind: No such file or directory");
}

}  // namespace
}  // namespace memsluice
