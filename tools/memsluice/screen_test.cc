// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/screen.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tools/memsluice/fake_daemon.h"
#include "tools/memsluice/sample_status.h"

namespace memsluice {
namespace {

constexpr const char* kEntered = "\033[?1049h\033[?25l";
constexpr const char* kLeft = "\033[?25h\033[?1049l";

// `memsluice top` itself, on a pseudo terminal of 80 columns.
class TopOnTerminal : public testing::Test {
 protected:
  void SetUp() override {
    winsize size{};
    size.ws_col = 80;
    size.ws_row = 24;
    int terminal = -1;
    pid_ = forkpty(&terminal, nullptr, nullptr, &size);
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) {
      setenv("LC_ALL", "C.UTF-8", 1);
      execl(MEMSLUICE_COMMAND, "memsluice", "--socket", daemon_.socket().c_str(), "top",
            "--interval", "0.2", nullptr);
      _exit(99);
    }
    terminal_ = Fd(terminal);
    ASSERT_TRUE(read_until("/batch.slice"));
  }

  void TearDown() override {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  // Reads what the command writes until `text` has come, for ten seconds at most.
  bool read_until(std::string_view text) {
    const SystemClock clock;
    const Milliseconds deadline = clock.monotonic() + Milliseconds(10000);
    while (output_.find(text) == output_.npos && clock.monotonic() < deadline) {
      pollfd entry{.fd = terminal_.get(), .events = POLLIN, .revents = 0};
      if (poll(&entry, 1, 100) <= 0) continue;
      char buffer[4096];
      const ssize_t count = read(terminal_.get(), buffer, sizeof(buffer));
      if (count <= 0) break;
      output_.append(buffer, static_cast<size_t>(count));
    }
    return output_.find(text) != output_.npos;
  }

  int wait_for_end() {
    EXPECT_TRUE(read_until(kLeft)) << "the terminal is given back";
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    termios mode{};
    EXPECT_EQ(tcgetattr(terminal_.get(), &mode), 0);
    EXPECT_EQ(mode.c_lflag & (ICANON | ECHO), tcflag_t{ICANON | ECHO});
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  FakeDaemon daemon_{answers({{"status", sample_status()}})};
  pid_t pid_ = -1;
  Fd terminal_;
  std::string output_;
};

TEST_F(TopOnTerminal, TakesTheOtherScreenAndGivesItBack) {
  EXPECT_EQ(output_.find(kEntered), 0U);
  ASSERT_EQ(write(terminal_.get(), "q", 1), 1);
  EXPECT_EQ(wait_for_end(), 0);
}

TEST_F(TopOnTerminal, GivesTheTerminalBackOnSignals) {
  kill(pid_, SIGTERM);
  EXPECT_EQ(wait_for_end(), 128 + SIGTERM);
}

TEST_F(TopOnTerminal, EndsOnControlC) {
  ASSERT_EQ(write(terminal_.get(), "\003", 1), 1);
  EXPECT_EQ(wait_for_end(), 128 + SIGINT);
}

TEST_F(TopOnTerminal, FollowsTheSizeOfTheTerminal) {
  EXPECT_NE(output_.find("REFUSED/s"), output_.npos);
  output_.clear();
  winsize size{};
  size.ws_col = 40;
  size.ws_row = 24;
  ASSERT_EQ(ioctl(terminal_.get(), TIOCSWINSZ, &size), 0);
  // A picture of the old size may still be under way.
  ASSERT_TRUE(read_until("\033[H"));
  output_.clear();
  ASSERT_TRUE(read_until("/batch.slice"));
  output_.clear();
  ASSERT_TRUE(read_until("/batch.slice"));
  EXPECT_EQ(output_.find("REFUSED/s"), output_.npos);
}

TEST_F(TopOnTerminal, GivesTheTerminalBackWhileItIsStopped) {
  ASSERT_EQ(write(terminal_.get(), "\032", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
  ASSERT_TRUE(WIFSTOPPED(status));
  ASSERT_TRUE(read_until(kLeft));
  output_.clear();
  kill(pid_, SIGCONT);
  EXPECT_TRUE(read_until(kEntered));
  ASSERT_EQ(write(terminal_.get(), "q", 1), 1);
  EXPECT_EQ(wait_for_end(), 0);
}

TEST(Screen, IsRefusedWithoutATerminal) {
  if (isatty(STDIN_FILENO) != 0) GTEST_SKIP() << "standard input is a terminal";
  const auto screen = Screen::open();
  ASSERT_FALSE(screen.ok());
  EXPECT_EQ(screen.error().object, "standard input");
}

}  // namespace
}  // namespace memsluice
