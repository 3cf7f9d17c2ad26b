// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/prometheus_text.h"

#include <fmt/format.h>

#include <cmath>

namespace memsluice {
namespace {

std::string_view kind_name(PrometheusText::Kind kind) {
  switch (kind) {
    case PrometheusText::Kind::kCounter:
      return "counter";
    case PrometheusText::Kind::kHistogram:
      return "histogram";
    default:
      return "gauge";
  }
}

// Names of cgroups may be any bytes, a label is UTF-8: what is not ASCII is spelled out.
std::string label_value(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '\\' || letter == '"')
      escaped += {'\\', letter};
    else if (byte < 0x20 || byte >= 0x7f)
      escaped += fmt::format("\\\\x{:02x}", byte);
    else
      escaped += letter;
  }
  return escaped;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

void PrometheusText::family(std::string name, Kind kind, std::string help) {
  header_ = fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, kind_name(kind));
  name_ = std::move(name);
}

void PrometheusText::line(std::string_view suffix, const Labels& labels, const std::string& value) {
  text_ += header_;
  header_.clear();
  text_ += name_;
  text_ += suffix;
  char before = '{';
  for (const auto& [label, label_text] : labels) {
    text_ += fmt::format("{}{}=\"{}\"", before, label, label_value(label_text));
    before = ',';
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
}

void PrometheusText::sample(const Labels& labels, uint64_t value) {
  line("", labels, fmt::format("{}", value));
}

void PrometheusText::sample(const Labels& labels, double value) {
  line("", labels, number_text(value));
}

void PrometheusText::histogram(const Labels& labels, const std::vector<double>& bounds,
                               const std::vector<uint64_t>& counts, double sum) {
  uint64_t below = 0;
  for (size_t i = 0; i < counts.size(); i++) {
    below += counts[i];
    Labels with_bound = labels;
    with_bound.emplace_back("le", number_text(i < bounds.size() ? bounds[i] : INFINITY));
    line("_bucket", with_bound, fmt::format("{}", below));
  }
  line("_sum", labels, number_text(sum));
  line("_count", labels, fmt::format("{}", below));
}

}  // namespace memsluice
