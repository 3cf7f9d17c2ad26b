// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <time.h>

#include "daemon/host/counters/channel_counters.h"

namespace memsluice {

inline Nanoseconds clock_now(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
}

inline Nanoseconds monotonic_now() {
  return clock_now(CLOCK_MONOTONIC);
}

}  // namespace memsluice
