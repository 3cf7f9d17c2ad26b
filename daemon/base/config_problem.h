// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string>

namespace memsluice {

struct SourcePosition {
  std::string file;
  uint32_t line = 0;
};

struct ConfigProblem {
  SourcePosition position;
  std::string key;
  std::string message;
  std::string hint = {};

  // "/etc/memsluice/memsluiced.toml:7: tenant.fast_limit: "x" is not a size (write it as ...)"
  std::string describe() const;
};

}  // namespace memsluice
