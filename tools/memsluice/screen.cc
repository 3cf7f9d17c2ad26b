// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>

namespace memsluice {
namespace {

constexpr std::string_view kEnter = "\033[?1049h\033[?25l";
constexpr std::string_view kLeave = "\033[?25h\033[?1049l";
constexpr std::string_view kHome = "\033[H";
constexpr std::string_view kClearToEndOfLine = "\033[K";
constexpr std::string_view kClearBelow = "\033[J";

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR && errno != EAGAIN) {
      return false;
    }
  }
  return true;
}

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH}) {
    sigaddset(&set, number);
  }
  return set;
}

}  // namespace

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {size.ws_col, size.ws_row};
}

Result<std::unique_ptr<Screen>> Screen::open() {
  std::unique_ptr<Screen> screen(new Screen);
  if (tcgetattr(screen->input_, &screen->earlier_mode_) != 0) {
    return errno_error(errno, "tcgetattr", "standard input")
        .with_hint("top needs a terminal; without one: memsluice top --once");
  }
  const sigset_t set = handled_signals();
  screen->signals_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!screen->signals_.valid()) return errno_error(errno, "signalfd", "top");
  sigprocmask(SIG_BLOCK, &set, &screen->earlier_mask_);
  screen->enter();
  return screen;
}

Screen::~Screen() {
  if (!signals_.valid()) return;
  leave();
  sigprocmask(SIG_SETMASK, &earlier_mask_, nullptr);
}

void Screen::enter() {
  termios mode = earlier_mode_;
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  mode.c_cc[VMIN] = 0;
  mode.c_cc[VTIME] = 0;
  tcsetattr(input_, TCSANOW, &mode);
  write_all(output_, kEnter);
}

void Screen::leave() {
  write_all(output_, kLeave);
  tcsetattr(input_, TCSANOW, &earlier_mode_);
}

bool Screen::draw(const std::vector<std::string>& lines) {
  std::string text(kHome);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += "\r\n";
    text += lines[i];
    text += kClearToEndOfLine;
  }
  text += kClearBelow;
  return write_all(output_, text);
}

Screen::Event Screen::wait(Milliseconds timeout) {
  const SystemClock clock;
  const Milliseconds deadline = clock.monotonic() + timeout;
  while (true) {
    pollfd entries[] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                        {.fd = input_, .events = POLLIN, .revents = 0}};
    const auto left = std::max(Milliseconds(0), deadline - clock.monotonic());
    const int ready = poll(entries, 2, static_cast<int>(left.count()));
    if (ready == 0) return Event::kTimeout;
    if (ready < 0) continue;
    if (entries[0].revents != 0) {
      if (auto event = take_signal()) return *event;
    }
    if (entries[1].revents != 0) {
      if (auto event = take_key()) return *event;
    }
  }
}

std::optional<Screen::Event> Screen::take_signal() {
  signalfd_siginfo info;
  if (read(signals_.get(), &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  switch (info.ssi_signo) {
    case SIGWINCH:
      return Event::kRedraw;
    case SIGTSTP:
      leave();
      raise(SIGSTOP);
      return std::nullopt;
    case SIGCONT:
      enter();
      return Event::kRedraw;
    default:
      stop_signal_ = static_cast<int>(info.ssi_signo);
      return Event::kQuit;
  }
}

std::optional<Screen::Event> Screen::take_key() {
  char key = 0;
  // Readable without a byte: the terminal is gone.
  if (read(input_, &key, 1) != 1 || key == 'q' || key == 'Q') return Event::kQuit;
  return std::nullopt;
}

}  // namespace memsluice
