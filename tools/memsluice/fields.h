// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/base/json.h"

namespace memsluice {

// Members of a reply. The daemon may be older or newer than this command, so whatever is missing
// or of another type is "not known" instead of an error.
std::optional<uint64_t> number(const Json& object, std::string_view key);
std::optional<double> real(const Json& object, std::string_view key);
std::optional<bool> flag(const Json& object, std::string_view key);
std::string text(const Json& object, std::string_view key, std::string_view otherwise = "-");

// The member, or null.
const Json& member(const Json& object, std::string_view key);

// The member, or an empty list where it is none.
const Json& items(const Json& object, std::string_view key);

// The sum of the numbers in a list or an object.
uint64_t sum(const Json& numbers);

}  // namespace memsluice
