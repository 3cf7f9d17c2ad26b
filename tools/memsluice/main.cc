// SPDX-License-Identifier: GPL-2.0
#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <iostream>
#include <string_view>

#include "tools/memsluice/run.h"
#include "tools/memsluice/screen.h"

namespace {

volatile std::sig_atomic_t stop_signal = 0;

// Only once: a second Ctrl-C ends the command whatever it waits for.
bool catch_signals() {
  struct sigaction action {};
  action.sa_handler = [](int received) { stop_signal = received; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
  return true;
}

int caught_signal() {
  static const bool catching = catch_signals();
  return catching ? stop_signal : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");
  const bool out_is_terminal = isatty(STDOUT_FILENO) != 0;
  const memsluice::Environment environment{
      .out = std::cout,
      .err = std::cerr,
      .in = &std::cin,
      .in_is_terminal = isatty(STDIN_FILENO) != 0,
      .out_is_terminal = out_is_terminal,
      .err_is_terminal = isatty(STDERR_FILENO) != 0,
      .unicode = std::string_view(nl_langinfo(CODESET)) == "UTF-8",
      .columns = memsluice::terminal_size(out_is_terminal ? STDOUT_FILENO : STDERR_FILENO).columns,
      .page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE)),
      .client = {},
      .stop_signal = caught_signal};
  return memsluice::run({argv + 1, argv + argc}, environment);
}
