// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memsluice {

// Prometheus' text exposition format, version 0.0.4. A family's samples stand together, below its
// name, kind and help; a family without samples leaves nothing.
class PrometheusText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;
  enum class Kind { kGauge, kCounter, kHistogram };

  void family(std::string name, Kind kind, std::string help);

  // Of the family that was begun last.
  void sample(const Labels& labels, uint64_t value);
  void sample(const Labels& labels, double value);
  // @counts[i]: of values below bounds[i], and not below the one before; the last, without a bound,
  // of all others.
  void histogram(const Labels& labels, const std::vector<double>& bounds,
                 const std::vector<uint64_t>& counts, double sum);

  const std::string& text() const { return text_; }

 private:
  void line(std::string_view suffix, const Labels& labels, const std::string& value);

  std::string name_;
  std::string header_;  // until the family has a sample
  std::string text_;
};

}  // namespace memsluice
