// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/toml_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "daemon/base/toml_text.h"

namespace memsluice {

const toml::node* TomlTable::find(std::string_view key) {
  known_.emplace(key);
  return table_.get(key);
}

std::string TomlTable::full_name(std::string_view key) const {
  if (name_.empty()) return std::string(key);
  return key.empty() ? name_ : fmt::format("{}.{}", name_, key);
}

SourcePosition TomlTable::position(std::string_view key) const {
  const toml::node* node = table_.get(key);
  const toml::node& place = node == nullptr ? table_ : *node;
  return {file_, place.source().begin.line};
}

void TomlTable::problem(std::string_view key, std::string message, std::string hint) {
  problems_.push_back({position(key), full_name(key), std::move(message), std::move(hint)});
}

std::optional<bool> TomlTable::boolean(const char* key) {
  const toml::node* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_boolean()) return value->get();
  problem(key, "must be true or false");
  return std::nullopt;
}

std::optional<std::string> TomlTable::text(const char* key) {
  const toml::node* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_string()) return value->get();
  problem(key, "must be a string, in quotes");
  return std::nullopt;
}

std::optional<uint64_t> TomlTable::integer(const char* key, uint64_t low, uint64_t high) {
  const toml::node* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_integer())
    if (value->get() >= 0) {
      auto number = static_cast<uint64_t>(value->get());
      if (number >= low && number <= high) return number;
    }
  problem(key, fmt::format("must be a whole number from {} to {}", low, high));
  return std::nullopt;
}

std::optional<TomlTable> TomlTable::table(const char* key) {
  const toml::node* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_table())
    return TomlTable(*value, full_name(key), file_, problems_);
  problem(key, fmt::format("must be a table, [{}]", key));
  return std::nullopt;
}

std::vector<TomlTable> TomlTable::array_of_tables(const char* key) {
  const toml::node* node = find(key);
  if (node == nullptr) return {};
  const toml::array* array = node->as_array();
  std::vector<TomlTable> tables;
  if (array != nullptr)
    for (const toml::node& element : *array)
      if (const auto* value = element.as_table())
        tables.emplace_back(*value, full_name(key), file_, problems_);
  if (array == nullptr || tables.size() != array->size())
    problem(key, fmt::format("must be a list of tables, each with [[{}]] above it", key));
  return tables;
}

void TomlTable::finish() {
  for (const auto& [key, node] : table_) {
    if (known_.contains(key.str())) continue;
    problems_.push_back({{file_, key.source().begin.line},
                         full_name(key.str()),
                         "no such key",
                         fmt::format("known are: {}", fmt::join(known_, ", "))});
  }
}

void read_toml(std::string_view text, const std::string& file, std::vector<ConfigProblem>& problems,
               const std::function<void(TomlTable&)>& read) {
  if (auto line = line_of_stray_letter(text)) {
    problems.push_back({{file, *line},
                        "",
                        "letters beyond ASCII stand in one-line strings and in comments only",
                        "put quotes around it, and a space in front of them"});
    return;
  }
  toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    problems.push_back({{file, parsed.error().source().begin.line},
                        "",
                        std::string(parsed.error().description())});
    return;
  }
  std::vector<ConfigProblem> found;
  TomlTable root(parsed.table(), "", file, found);
  read(root);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.position.line < b.position.line; });
  std::move(found.begin(), found.end(), std::back_inserter(problems));
}

std::string ConfigProblem::describe() const {
  std::string text = position.file;
  if (position.line != 0) text += fmt::format(":{}", position.line);
  text += ": ";
  if (!key.empty()) text += key + ": ";
  text += message;
  if (!hint.empty()) text += fmt::format(" ({})", hint);
  return text;
}

}  // namespace memsluice
