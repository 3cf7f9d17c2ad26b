// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/memsluice/fields.h"

namespace memsluice {

struct FrameOptions {
  size_t columns = 80;
  size_t rows = 0;  // 0: as many as it takes
  bool unicode = true;
  uint64_t page_bytes = 4096;
  std::string notice = {};  // stands in the first line, for instance why the picture is old
};

// The lines of one picture of `top`, from what top_sample() made: no line is wider, and there are
// no more of them, than the options say.
std::vector<std::string> top_frame(const Json& sample, const FrameOptions& options);

}  // namespace memsluice
