// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace memsluice {

using Milliseconds = std::chrono::milliseconds;

// The one place where time comes from, so that tests can turn it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Milliseconds monotonic() const = 0;
  virtual int64_t unix_s() const = 0;
};

class SystemClock : public Clock {
 public:
  Milliseconds monotonic() const override {
    return std::chrono::duration_cast<Milliseconds>(
        std::chrono::steady_clock::now().time_since_epoch());
  }
  int64_t unix_s() const override {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace memsluice
