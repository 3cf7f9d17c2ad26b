// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace memsluice::guest {

// Counts of times in buckets whose width is at most 1/32 of the time.
class LatencyHistogram {
 public:
  void add(uint64_t nanoseconds) {
    ++buckets_[bucket_of(nanoseconds)];
    ++count_;
    max_ = std::max(max_, nanoseconds);
  }

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }

  // The time that `percent` of all times do not exceed, rounded up to the end of its bucket.
  uint64_t percentile(double percent) const {
    const auto wanted =
        static_cast<uint64_t>(std::ceil(percent / 100 * static_cast<double>(count_)));
    uint64_t seen = 0;
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      seen += buckets_[bucket];
      if (seen >= wanted && seen > 0) return std::min(last_of(bucket), max_);
    }
    return max_;
  }

 private:
  static constexpr int kSubBits = 5;
  static constexpr uint64_t kSub = 1 << kSubBits;

  // Times below 2 * kSub have a bucket each; each further power of two is cut into kSub.
  static size_t bucket_of(uint64_t time) {
    const int shift = std::max(0, static_cast<int>(std::bit_width(time)) - kSubBits - 1);
    return static_cast<size_t>(shift) * kSub + static_cast<size_t>(time >> shift);
  }
  static uint64_t last_of(size_t bucket) {
    if (bucket < 2 * kSub) return bucket;
    const uint64_t shift = bucket / kSub - 1;
    return ((bucket - shift * kSub + 1) << shift) - 1;
  }

  std::array<uint64_t, (64 - kSubBits + 1) * kSub> buckets_{};
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace memsluice::guest
