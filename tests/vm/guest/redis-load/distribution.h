// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <variant>

#include "daemon/base/result.h"
#include "tests/vm/guest/random.h"

namespace memsluice::guest {

// Ranks 0 to count - 1, rank r with a probability in proportion to (r + 1)^-exponent. Samples by
// rejection under the integral of x^-exponent (Hörmann and Derflinger, 1996): no table, so the
// generator adds no memory traffic of its own.
class Zipf {
 public:
  Zipf(uint64_t count, double exponent)
      : exponent_(exponent),
        count_(count),
        low_(integral(1.5) - 1),
        high_(integral(static_cast<double>(count) + 0.5)),
        accept_within_(2 - inverse(integral(2.5) - density(2))) {}

  uint64_t pick(Random& random) const {
    for (;;) {
      const double area = high_ + random.unit() * (low_ - high_);
      const double x = inverse(area);
      const double rank = std::clamp(std::round(x), 1.0, static_cast<double>(count_));
      if (rank - x <= accept_within_ || area >= integral(rank + 0.5) - density(rank)) {
        return static_cast<uint64_t>(rank) - 1;
      }
    }
  }

 private:
  double density(double x) const { return std::pow(x, -exponent_); }
  double integral(double x) const {
    const double power = 1 - exponent_;
    return power == 0 ? std::log(x) : std::expm1(power * std::log(x)) / power;
  }
  double inverse(double area) const {
    const double power = 1 - exponent_;
    return power == 0 ? std::exp(area) : std::exp(std::log1p(power * area) / power);
  }

  double exponent_;
  uint64_t count_;
  double low_;
  double high_;
  double accept_within_;
};

// `share` of the picks from the first `fraction` of the ranks, the others from the rest; evenly
// in both.
class Hot {
 public:
  Hot(uint64_t count, double fraction, double share)
      : count_(count),
        hot_(std::clamp<uint64_t>(static_cast<uint64_t>(fraction * static_cast<double>(count)), 1,
                                  count)),
        share_(share) {}

  uint64_t hot_count() const { return hot_; }

  uint64_t pick(Random& random) const {
    if (hot_ == count_ || random.unit() < share_) return random.below(hot_);
    return hot_ + random.below(count_ - hot_);
  }

 private:
  uint64_t count_;
  uint64_t hot_;
  double share_;
};

// What --skew says: "zipf:EXPONENT" or "hot:FRACTION:SHARE".
struct Skew {
  bool is_zipf = true;
  double exponent = 0.99;
  double fraction = 0;
  double share = 0;

  static Result<Skew> parse(std::string_view text) {
    const Error error{ErrorCode::kBadRequest,
                      std::string(text),
                      "not a skew",
                      "write zipf:0.99 or hot:FRACTION:SHARE, both between 0 and 1",
                      0,
                      {}};
    Skew skew;
    if (text.starts_with("zipf:")) {
      text.remove_prefix(5);
      if (!take(text, skew.exponent) || !text.empty()) return error;
      if (skew.exponent <= 0 || skew.exponent > 10) return error;
      return skew;
    }
    if (!text.starts_with("hot:")) return error;
    text.remove_prefix(4);
    skew.is_zipf = false;
    if (!take(text, skew.fraction) || !text.starts_with(':')) return error;
    text.remove_prefix(1);
    if (!take(text, skew.share) || !text.empty()) return error;
    if (skew.fraction <= 0 || skew.fraction > 1 || skew.share < 0 || skew.share > 1) return error;
    return skew;
  }

 private:
  static bool take(std::string_view& text, double& number) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{}) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
  }
};

// Which keys are asked for. Neighbouring ranks are neighbouring keys, which a server that was
// filled in order keeps on neighbouring pages; `scatter` spreads them over all keys instead.
// Every shift moves the hot keys on: a hot part by its own size, a Zipf curve by a tenth of all.
class KeyPicker {
 public:
  KeyPicker(const Skew& skew, uint64_t keys, bool scatter)
      : keys_(keys),
        stride_(scatter ? coprime_stride(keys) : 1),
        ranks_(Zipf(keys, skew.exponent)) {
    shift_ = std::max<uint64_t>(1, keys / 10);
    if (!skew.is_zipf) {
      const Hot hot(keys, skew.fraction, skew.share);
      shift_ = hot.hot_count();
      ranks_ = hot;
    }
  }

  uint64_t pick(Random& random, uint64_t shifts) const {
    const uint64_t rank = std::visit([&](const auto& ranks) { return ranks.pick(random); }, ranks_);
    const unsigned __int128 moved = static_cast<unsigned __int128>(shifts) * shift_ + rank;
    return static_cast<uint64_t>(moved % keys_ * stride_ % keys_);
  }

 private:
  // A stride without a common divisor visits every key once.
  static uint64_t coprime_stride(uint64_t keys) {
    uint64_t stride = static_cast<uint64_t>(0.6180339887 * static_cast<double>(keys)) | 1;
    while (std::gcd(stride, keys) != 1) stride += 2;
    return stride;
  }

  uint64_t keys_;
  uint64_t stride_;
  uint64_t shift_;
  std::variant<Zipf, Hot> ranks_;
};

}  // namespace memsluice::guest
