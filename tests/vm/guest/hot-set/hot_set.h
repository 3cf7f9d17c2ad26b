// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "tests/vm/guest/random.h"

namespace memsluice::guest {

inline constexpr uint64_t kLineBytes = 64;

// What one line of the buffer holds: every word follows from the line's place and from how often
// it has been written, so a byte that was lost, torn, stale or of another page shows.
struct Line {
  std::array<uint64_t, kLineBytes / 8> words;

  static Line of(uint64_t index, uint64_t version) {
    Line line;
    const uint64_t seed = mix(index) + version;
    for (uint64_t i = 0; i < line.words.size(); ++i) line.words[i] = mix(seed + (i << 32));
    return line;
  }

  bool operator==(const Line&) const = default;
};
static_assert(sizeof(Line) == kLineBytes);

// Where accesses go: `hot_percent` of them into a window of `hot_lines` that is somewhere else
// after every shift, the others anywhere. A few windows in a row are spread over the whole buffer,
// so that as many of them are in fast memory by chance as the fast part of the buffer has room for.
struct HotSet {
  uint64_t lines;
  uint64_t hot_lines;
  uint64_t hot_percent;

  uint64_t windows() const { return std::max<uint64_t>(lines / hot_lines, 1); }

  // Near the golden section of all windows, and with no divisor in common: each has its turn.
  uint64_t stride() const {
    uint64_t stride = std::max<uint64_t>(windows() * 618 / 1000, 1);
    while (std::gcd(stride, windows()) != 1) ++stride;
    return stride;
  }

  uint64_t first_hot_line(uint64_t shifts) const {
    return (shifts % windows() + 1) * stride() % windows() * hot_lines;
  }

  uint64_t pick(Random& random, uint64_t shifts) const {
    if (random.below(100) >= hot_percent) return random.below(lines);
    return std::min(first_hot_line(shifts) + random.below(hot_lines), lines - 1);
  }
};

}  // namespace memsluice::guest
