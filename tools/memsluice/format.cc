// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace memsluice {
namespace {

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// C1 controls are two bytes in UTF-8: C2, and 80 to 9F.
bool starts_c1(std::string_view text, size_t at) {
  return static_cast<unsigned char>(text[at]) == 0xC2 && at + 1 < text.size() &&
         static_cast<unsigned char>(text[at + 1]) < 0xA0;
}

}  // namespace

std::string human_bytes(std::optional<double> bytes) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (!bytes || !(*bytes >= 0)) return "-";
  double value = *bytes;
  size_t unit = 0;
  // 999.5 would be printed as 1000: four digits are for the next unit.
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (value == 0) return "0";
  const bool fraction = unit > 0 && value < 9.95;
  return fmt::format("{:.{}f} {}", value, fraction ? 1 : 0, kUnits[unit]);
}

std::string human_count(std::optional<uint64_t> count) {
  return count ? fmt::format("{}", *count) : "-";
}

std::string human_duration(uint64_t seconds) {
  const uint64_t minutes = seconds / 60;
  const uint64_t hours = minutes / 60;
  if (minutes == 0) return fmt::format("{} s", seconds);
  if (hours == 0) return fmt::format("{} min {} s", minutes, seconds % 60);
  if (hours < 24) return fmt::format("{} h {} min", hours, minutes % 60);
  return fmt::format("{} d {} h", hours / 24, hours % 24);
}

std::string printable(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else if (starts_c1(text, at)) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++at]));
    } else {
      result += text[at];
    }
  }
  return result;
}

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !continues(byte); }));
}

std::string shortened(std::string_view text, size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  size_t end = 0;
  for (size_t width = 0; end < text.size(); ++end) {
    if (!continues(text[end]) && width++ == columns - 1) break;
  }
  return std::string(text.substr(0, end)) + '~';
}

std::string padded_left(std::string_view text, size_t columns) {
  const size_t width = display_width(text);
  return std::string(columns > width ? columns - width : 0, ' ') + std::string(text);
}

std::string padded_right(std::string_view text, size_t columns) {
  const size_t width = display_width(text);
  return std::string(text) + std::string(columns > width ? columns - width : 0, ' ');
}

void Table::add_row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::render() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = display_width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[i]));
    widths.push_back(width);
  }
  std::string result;
  const auto add_line = [&](auto&& cell) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line += "  ";
      const bool right = columns_[i].align == Align::kRight;
      line += right ? padded_left(cell(i), widths[i]) : padded_right(cell(i), widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + '\n';
  };
  add_line([&](size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_) add_line([&](size_t i) -> const std::string& { return row[i]; });
  return result;
}

}  // namespace memsluice
