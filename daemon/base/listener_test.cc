// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "daemon/base/temporary_directory.h"
#include "daemon/base/unix_socket.h"

namespace memsluice {
namespace {

class ListenerTest : public testing::Test {
 protected:
  ListenerTest() { EXPECT_TRUE(listener_.start(*listen_at(path_, 0600)).ok()); }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.path("/socket");
  SystemClock clock_;
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  std::vector<std::string> said_;
  const Log log_{LogLevel::kInfo, [this](std::string_view line) { said_.emplace_back(line); }};
  std::vector<Fd> connections_;
  Listener listener_{*loop_, log_, SOCK_NONBLOCK,
                     [this](Fd socket) { connections_.push_back(std::move(socket)); }};
};

TEST_F(ListenerTest, TakesAllThatWait) {
  const Fd first = *connect_to(path_), second = *connect_to(path_);
  ASSERT_TRUE(loop_->run_once(Milliseconds(10000)).ok());
  ASSERT_EQ(connections_.size(), 2U);
  EXPECT_TRUE(fcntl(connections_[0].get(), F_GETFL) & O_NONBLOCK);
  EXPECT_TRUE(fcntl(connections_[0].get(), F_GETFD) & FD_CLOEXEC);
}

TEST_F(ListenerTest, TriesAgainWhenThereWasNoDescriptor) {
  const Fd client = *connect_to(path_);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  // A descriptor is the lowest that is free.
  const Fd free(dup(client.get()));
  rlimit none_left = limit;
  none_left.rlim_cur = static_cast<rlim_t>(free.get());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  EXPECT_TRUE(loop_->run_once(Milliseconds(10000)).ok());
  EXPECT_TRUE(connections_.empty());
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_NE(said_[0].find("accept: Too many open files"), std::string::npos);
  // Who waits does not wake it meanwhile.
  EXPECT_TRUE(loop_->run_once(Milliseconds(1)).ok());
  EXPECT_EQ(said_.size(), 1U);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  while (connections_.empty()) ASSERT_TRUE(loop_->run_once(Milliseconds(10000)).ok());
  EXPECT_EQ(said_.size(), 1U);
}

}  // namespace
}  // namespace memsluice
