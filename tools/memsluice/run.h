// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "tools/memsluice/client.h"

namespace memsluice {

// Everything outside that the command touches, apart from the daemon and the host's files.
struct Environment {
  std::ostream& out;
  std::ostream& err;
  std::istream* in = nullptr;
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool unicode = true;
  size_t columns = 80;  // of the terminal, where one is
  uint64_t page_bytes = 4096;
  ClientOptions client = {};
  // The signal that asks to stop, or 0. Who never asks is ended by signals as usual.
  std::function<int()> stop_signal = [] { return 0; };
};

// Runs one command; the result is the exit status.
int run(const std::vector<std::string>& arguments, const Environment& environment);

// "memsluice: OBJECT: what is wrong", and what to do on the next line.
void print_error(const Error& error, std::ostream& err);

}  // namespace memsluice
