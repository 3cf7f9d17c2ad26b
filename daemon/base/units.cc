// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/units.h"

#include <fmt/format.h>

#include <charconv>

namespace memsluice {
namespace {

constexpr std::string_view kUnits = "KMGTP";

Error not_a(std::string_view what, std::string_view text, std::string_view example) {
  return {.code = ErrorCode::kBadRequest,
          .message = fmt::format("\"{}\" is not {}", text, what),
          .hint = fmt::format("write it as {}", example)};
}

// Reads digits at the front of text and takes them away; false if there are none or too many.
bool take_digits(std::string_view& text, uint64_t& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return false;
  text.remove_prefix(end - text.data());
  return true;
}

// 0 if the text is no unit.
uint64_t bytes_of_unit(std::string_view text) {
  if (text.empty() || text == "B") return 1;
  size_t index = kUnits.find(text.front());
  std::string_view rest = text.substr(1);
  if (index == std::string_view::npos || (!rest.empty() && rest != "iB")) return 0;
  return uint64_t{1} << (10 * (index + 1));
}

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
  const Error error = not_a("a size", text, "512M, 1.5G or 4096");
  std::string_view rest = text;
  uint64_t whole = 0;
  if (!take_digits(rest, whole)) return error;

  uint64_t fraction = 0;
  uint64_t fraction_scale = 1;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    size_t before = rest.size();
    if (!take_digits(rest, fraction)) return error;
    // Three digits are enough for people, and keep the product below 64 bits.
    if (before - rest.size() > 3) return error;
    for (size_t digits = before - rest.size(); digits > 0; digits--) fraction_scale *= 10;
  }

  uint64_t unit = bytes_of_unit(rest);
  uint64_t bytes = 0;
  if (unit == 0 || (unit == 1 && fraction_scale != 1)) return error;
  if (__builtin_mul_overflow(whole, unit, &bytes)) return error;
  if (__builtin_add_overflow(bytes, unit * fraction / fraction_scale, &bytes)) return error;
  return bytes;
}

Result<uint32_t> parse_percent(std::string_view text) {
  const Error error = not_a("a share", text, "30%");
  std::string_view rest = text;
  uint64_t percent = 0;
  if (!take_digits(rest, percent) || rest != "%" || percent > 100) return error;
  return static_cast<uint32_t>(percent);
}

Result<uint64_t> parse_number(std::string_view text, uint64_t low, uint64_t high) {
  std::string_view rest = text;
  uint64_t number = 0;
  if (!take_digits(rest, number) || !rest.empty() || number < low || number > high)
    return not_a("a number in bounds", text,
                 fmt::format("a whole number from {} to {}", low, high));
  return number;
}

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.95 would be shown as 1024.0.
  for (value /= 1024; value >= 1023.95 && unit + 1 < kUnits.size(); unit++) value /= 1024;
  std::string number = fmt::format("{:.1f}", value);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return fmt::format("{} {}iB", number, kUnits[unit]);
}

std::string format_bytes_exact(uint64_t bytes) {
  for (size_t unit = kUnits.size(); unit > 0 && bytes != 0; unit--)
    if (bytes % (uint64_t{1} << (10 * unit)) == 0)
      return fmt::format("{}{}", bytes >> (10 * unit), kUnits[unit - 1]);
  return fmt::format("{}", bytes);
}

}  // namespace memsluice
