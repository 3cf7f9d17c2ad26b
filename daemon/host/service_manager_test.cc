// SPDX-License-Identifier: GPL-2.0
#include "daemon/host/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>

#include "daemon/base/fd.h"
#include "daemon/base/temporary_directory.h"

namespace memsluice {
namespace {

class ServiceManagerTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
  }
};

TEST_F(ServiceManagerTest, TellsTheSocketOfTheEnvironment) {
  TemporaryDirectory directory;
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, directory.path("/notify").c_str());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ::setenv("NOTIFY_SOCKET", address.sun_path, 1);

  ServiceManager::from_environment().notify("READY=1\nSTATUS=well");
  char received[64] = {};
  ASSERT_GT(::recv(socket.get(), received, sizeof(received) - 1, 0), 0);
  EXPECT_STREQ(received, "READY=1\nSTATUS=well");
}

TEST_F(ServiceManagerTest, TellsNobodyWhenNobodyAsked) {
  ServiceManager manager = ServiceManager::from_environment();
  manager.notify("READY=1");
  EXPECT_EQ(manager.watchdog_period(), std::nullopt);
}

TEST_F(ServiceManagerTest, TheWatchdogIsFedTwiceAsOftenAsItMust) {
  ::setenv("WATCHDOG_USEC", "30000000", 1);
  EXPECT_EQ(ServiceManager::from_environment().watchdog_period(), Milliseconds(15000));
  ::setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(ServiceManager::from_environment().watchdog_period(), std::nullopt);
}

}  // namespace
}  // namespace memsluice
