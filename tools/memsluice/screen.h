// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <signal.h>
#include <termios.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/base/fd.h"
#include "daemon/base/result.h"

namespace memsluice {

struct TerminalSize {
  size_t columns = 80;
  size_t rows = 24;
};

TerminalSize terminal_size(int fd);

// The terminal taken over: its other screen, no cursor, keys as they are typed. Given back when
// this ends, and while the process is stopped. There is one in a process: it takes the signals.
class Screen {
 public:
  static Result<std::unique_ptr<Screen>> open();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  TerminalSize size() const { return terminal_size(output_); }
  // False when the terminal is gone.
  bool draw(const std::vector<std::string>& lines);

  enum class Event { kTimeout, kRedraw, kQuit };
  // kQuit: the user or a signal wants an end, and stop_signal() says which, or 0.
  Event wait(Milliseconds timeout);
  int stop_signal() const { return stop_signal_; }

 private:
  Screen() = default;
  void enter();
  void leave();
  std::optional<Event> take_signal();
  std::optional<Event> take_key();

  const int input_ = 0;
  const int output_ = 1;
  Fd signals_;
  sigset_t earlier_mask_{};
  termios earlier_mode_{};
  int stop_signal_ = 0;
};

}  // namespace memsluice
