// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <array>
#include <cstdint>

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

// Where accesses go: `hot_percent` of them into a window of `hot_lines` that moves on by its own
// size at every shift, the others anywhere.
struct HotSet {
  uint64_t lines;
  uint64_t hot_lines;
  uint64_t hot_percent;

  uint64_t first_hot_line(uint64_t shifts) const { return shifts * hot_lines % lines; }

  uint64_t pick(Random& random, uint64_t shifts) const {
    if (random.below(100) >= hot_percent) return random.below(lines);
    return (first_hot_line(shifts) + random.below(hot_lines)) % lines;
  }
};

}  // namespace memsluice::guest
