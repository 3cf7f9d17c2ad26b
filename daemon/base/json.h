// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "daemon/base/result.h"

namespace memsluice {

using Json = nlohmann::json;

// Arrays and objects inside each other, counted without parsing; brackets in strings do not count.
size_t json_depth(std::string_view text);

// Refuses what is nested deeper before it parses.
Result<Json> parse_json(std::string_view text, size_t max_depth);

// On one line. Text that is not UTF-8 (a cgroup may have any name) is replaced, never an error.
std::string to_line(const Json& value);

// {"code", "object", "message", "hint"?} of docs/api.md; the context is put in front of the
// message.
Json error_to_json(const Error& error);
std::optional<Error> error_from_json(const Json& value);

// Reads the members of an object and remembers the first thing that is wrong with it. Ask for
// every member that is known, then look at finish(): it also refuses members never asked for.
class ObjectReader {
 public:
  explicit ObjectReader(const Json& object);

  bool has(std::string_view key) const { return object_.contains(key); }
  // A member that is null is not there.
  std::optional<bool> boolean(const char* key);
  std::optional<std::string> text(const char* key);
  std::optional<uint64_t> number(const char* key, uint64_t low, uint64_t high);
  // Unlike the others this one gives null a meaning, `when_null`.
  std::optional<uint64_t> number_or_null(const char* key, uint64_t when_null);

  template <typename T>
  T require(const char* key, std::optional<T> value) {
    if (!value) missing(key);
    return std::move(value).value_or(T());
  }

  Result<void> finish();

 private:
  const Json* find(const char* key);
  void missing(const char* key);
  void fail(const char* key, std::string message);

  const Json& object_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> error_;
};

}  // namespace memsluice
