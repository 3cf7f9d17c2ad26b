// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/memsluice-dsa/shape.h"

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

// What has been printed instead of doing anything, and with what status to exit.
struct Printed {
  std::string text;
  int status = 0;
};

using Arguments = std::variant<ServeOptions, AskOptions, Printed>;

// Of the command line, without the program's name.
Arguments parse_arguments(const std::vector<std::string>& arguments);

}  // namespace memsluice::dsa
