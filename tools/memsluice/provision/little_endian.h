// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace memsluice::provision {

// The number at an offset of a structure of the firmware; 0 if the structure ends before it does,
// as older and shorter structures do.
template <std::unsigned_integral Number>
Number little_endian(std::string_view bytes, size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Number)) return 0;
  Number number = 0;
  for (size_t i = sizeof(Number); i-- > 0;)
    number =
        static_cast<Number>((number << 4 << 4) | static_cast<unsigned char>(bytes[offset + i]));
  return number;
}

// Writes into a structure that is long enough.
template <std::unsigned_integral Number>
void put_little_endian(std::string& bytes, size_t offset, Number number) {
  for (size_t i = 0; i < sizeof(Number); i++) {
    bytes.at(offset + i) = static_cast<char>(number);
    number = static_cast<Number>(number >> 4 >> 4);
  }
}

}  // namespace memsluice::provision
