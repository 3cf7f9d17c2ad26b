// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>

namespace memsluice::guest {

// A bijection of 64 bits in which every bit of the result depends on every bit given.
constexpr uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93;
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93;
  return value ^ (value >> 32);
}

// Cheap enough to be no part of what is measured, and the same everywhere for one seed.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}

  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15); }

  // From 0 to bound - 1.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

  // From 0 to below 1.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace memsluice::guest
