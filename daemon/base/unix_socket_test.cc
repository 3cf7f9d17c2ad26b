// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/unix_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <thread>

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

TEST(UnixSocket, SendsAllOrSaysWhyNot) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const Fd sender(pair[0]);
  Fd receiver(pair[1]);
  const std::string data(1 << 20, 'x');
  std::thread reader([&] {
    std::string buffer(1 << 16, 0);
    size_t left = data.size();
    while (left) left -= static_cast<size_t>(::read(receiver.get(), buffer.data(), buffer.size()));
  });
  EXPECT_TRUE(send_all(sender.get(), data).ok());
  reader.join();
  set_send_timeout(sender.get(), Milliseconds(20));
  EXPECT_EQ(send_all(sender.get(), data).error().os_error, EAGAIN);
  receiver.reset();
  EXPECT_EQ(send_all(sender.get(), data).error().os_error, EPIPE);
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
