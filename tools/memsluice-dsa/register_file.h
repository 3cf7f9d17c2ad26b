// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace memsluice::dsa {

// The bytes of a bank of registers. Who calls sees to it that offsets are inside.
class RegisterFile {
 public:
  explicit RegisterFile(size_t bytes) : bytes_(bytes) {}

  template <typename T>
  T get(size_t offset) const {
    T value;
    std::memcpy(&value, &bytes_[offset], sizeof(value));
    return value;
  }
  template <typename T>
  void set(size_t offset, T value) {
    std::memcpy(&bytes_[offset], &value, sizeof(value));
  }
  std::span<uint8_t> at(size_t offset, size_t count) { return {&bytes_[offset], count}; }
  size_t size() const { return bytes_.size(); }
  void clear() { std::fill(bytes_.begin(), bytes_.end(), uint8_t{0}); }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace memsluice::dsa
