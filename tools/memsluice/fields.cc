// SPDX-License-Identifier: GPL-2.0
#include "tools/memsluice/fields.h"

namespace memsluice {
namespace {

std::optional<uint64_t> as_number(const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_integer() && value.get<int64_t>() >= 0) return value.get<uint64_t>();
  return std::nullopt;
}

}  // namespace

const Json& member(const Json& object, std::string_view key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

const Json& items(const Json& object, std::string_view key) {
  static const Json empty = Json::array();
  const Json& value = member(object, key);
  return value.is_array() ? value : empty;
}

std::optional<uint64_t> number(const Json& object, std::string_view key) {
  return as_number(member(object, key));
}

std::optional<double> real(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

std::optional<bool> flag(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  if (!value.is_boolean()) return std::nullopt;
  return value.get<bool>();
}

std::string text(const Json& object, std::string_view key, std::string_view otherwise) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string(otherwise);
}

uint64_t sum(const Json& numbers) {
  uint64_t total = 0;
  if (!numbers.is_structured()) return 0;
  for (const Json& value : numbers) total += as_number(value).value_or(0);
  return total;
}

}  // namespace memsluice
