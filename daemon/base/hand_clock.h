// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "daemon/base/clock.h"

namespace memsluice {

// Turned by hand, for tests.
class HandClock : public Clock {
 public:
  Milliseconds monotonic() const override { return now; }
  int64_t unix_s() const override { return 1000; }
  Milliseconds now{0};
};

}  // namespace memsluice
