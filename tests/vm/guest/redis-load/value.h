// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "tests/vm/guest/random.h"

namespace memsluice::guest {

// A value starts with its key's number, its version and a checksum of both; all further bytes
// follow from them. So whoever reads one can tell which it is, and whether every byte is right.
struct ValueHeader {
  uint64_t key;
  uint64_t version;
  uint64_t checksum;

  static ValueHeader of(uint64_t key, uint64_t version) {
    return {key, version, mix(mix(key) ^ version)};
  }
};

inline constexpr uint64_t kMinValueBytes = sizeof(ValueHeader);

inline void make_value(uint64_t key, uint64_t version, std::string& value) {
  const ValueHeader header = ValueHeader::of(key, version);
  std::memcpy(value.data(), &header, sizeof header);
  Random random(header.checksum);
  for (size_t at = sizeof header; at < value.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random.next();
    std::memcpy(value.data() + at, &word, std::min(sizeof word, value.size() - at));
  }
}

// The version of a value that belongs to the key and is right in every byte; `scratch` has the
// size that all values have.
inline std::optional<uint64_t> verify_value(uint64_t key, std::string_view value,
                                            std::string& scratch) {
  if (value.size() != scratch.size()) return std::nullopt;
  ValueHeader header;
  std::memcpy(&header, value.data(), sizeof header);
  make_value(key, header.version, scratch);
  if (value != scratch) return std::nullopt;
  return header.version;
}

}  // namespace memsluice::guest
