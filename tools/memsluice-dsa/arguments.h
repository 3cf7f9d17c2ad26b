// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/memsluice-dsa/shape.h"
#include "tools/memsluice-dsa/timing.h"

namespace memsluice::dsa {

// To be the device.
struct ServeOptions {
  std::string socket;
  std::string control;  // empty: none
  Shape shape;
  bool verbose = false;
};

// To ask one that runs.
struct AskOptions {
  std::string control;
  std::string method;
  std::string parameters = "{}";
};

// To say what hardware would have taken.
struct TimeOptions {
  std::vector<std::string> traces;  // files, one for each device
  TimingConstants constants;
};

// What has been printed instead of doing anything, and with what status to exit.
struct Printed {
  std::string text;
  int status = 0;
};

using Arguments = std::variant<ServeOptions, AskOptions, TimeOptions, Printed>;

// Of the command line, without the program's name.
Arguments parse_arguments(const std::vector<std::string>& arguments);

}  // namespace memsluice::dsa
