// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// toml++ asserts (and, where NDEBUG is set, lets clang assume) things that a file like "[[["
// breaks, although the code behind is there to tell them as errors.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "daemon/base/config_problem.h"
#include "daemon/base/result.h"

namespace memsluice {

// Reads the keys of one table and adds every problem it meets to the list. Ask for every key that
// is known, then call finish(), which complains about the others.
class TomlTable {
 public:
  TomlTable(const toml::table& table, std::string name, std::string file,
            std::vector<ConfigProblem>& problems)
      : table_(table), name_(std::move(name)), file_(std::move(file)), problems_(problems) {}

  std::optional<bool> boolean(const char* key);
  std::optional<std::string> text(const char* key);
  std::optional<uint64_t> integer(const char* key, uint64_t low, uint64_t high);
  // The text, converted; the converter's error is what is wrong with the key.
  template <typename T>
  std::optional<T> converted(const char* key,
                             std::function<Result<T>(const std::string&)> convert) {
    auto value = text(key);
    if (!value) return std::nullopt;
    auto result = convert(*value);
    if (result.ok()) return *std::move(result);
    problem(key, result.error().message, result.error().hint);
    return std::nullopt;
  }
  std::optional<TomlTable> table(const char* key);
  std::vector<TomlTable> array_of_tables(const char* key);

  void problem(std::string_view key, std::string message, std::string hint = {});
  SourcePosition position(std::string_view key) const;
  const toml::table& contents() const { return table_; }
  void finish();

 private:
  const toml::node* find(std::string_view key);
  std::string full_name(std::string_view key) const;

  const toml::table& table_;
  std::string name_;
  std::string file_;
  std::vector<ConfigProblem>& problems_;
  std::set<std::string, std::less<>> known_;
};

// Parses a file and has its root table read, if it is TOML at all. What is wrong with it is added
// to the problems, in the order of its lines.
void read_toml(std::string_view text, const std::string& file, std::vector<ConfigProblem>& problems,
               const std::function<void(TomlTable&)>& read);

}  // namespace memsluice
