// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace memsluice {

namespace {

std::optional<uint64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_integer() && value.get<int64_t>() >= 0) return value.get<uint64_t>();
  return std::nullopt;
}

}  // namespace

size_t json_depth(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') i++;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      depth--;
    }
  }
  return deepest;
}

Result<Json> parse_json(std::string_view text, size_t max_depth) {
  if (json_depth(text) > max_depth)
    return Error{.code = ErrorCode::kBadRequest,
                 .message = fmt::format("nested more than {} deep", max_depth)};
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return Error{.code = ErrorCode::kBadRequest, .message = "not JSON"};
  return value;
}

std::string to_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json error_to_json(const Error& error) {
  std::string message;
  for (auto what = error.context.rbegin(); what != error.context.rend(); ++what)
    message += *what + ": ";
  Json value = {{"code", error_code_name(error.code)},
                {"object", error.object},
                {"message", message + error.message}};
  if (!error.hint.empty()) value["hint"] = error.hint;
  return value;
}

std::optional<Error> error_from_json(const Json& value) {
  if (!value.is_object()) return std::nullopt;
  auto text = [&](const char* key) {
    auto member = value.find(key);
    return member != value.end() && member->is_string() ? member->get<std::string>()
                                                        : std::string();
  };
  auto code = error_code_from_name(text("code"));
  if (!code) return std::nullopt;
  return Error{
      .code = *code, .object = text("object"), .message = text("message"), .hint = text("hint")};
}

ObjectReader::ObjectReader(const Json& object) : object_(object) {
  if (!object_.is_object())
    error_ = Error{.code = ErrorCode::kBadRequest, .message = "must be an object"};
}

const Json* ObjectReader::find(const char* key) {
  known_.insert(key);
  if (!object_.is_object()) return nullptr;
  auto member = object_.find(key);
  return member == object_.end() ? nullptr : &*member;
}

void ObjectReader::fail(const char* key, std::string message) {
  if (error_) return;
  error_ = Error{.code = ErrorCode::kBadRequest, .object = key, .message = std::move(message)};
}

void ObjectReader::missing(const char* key) {
  fail(key, "is missing");
}

std::optional<bool> ObjectReader::boolean(const char* key) {
  const Json* member = find(key);
  if (member == nullptr || member->is_null()) return std::nullopt;
  if (member->is_boolean()) return member->get<bool>();
  fail(key, "must be true or false");
  return std::nullopt;
}

std::optional<std::string> ObjectReader::text(const char* key) {
  const Json* member = find(key);
  if (member == nullptr || member->is_null()) return std::nullopt;
  if (member->is_string()) return member->get<std::string>();
  fail(key, "must be a string");
  return std::nullopt;
}

std::optional<uint64_t> ObjectReader::number(const char* key, uint64_t low, uint64_t high) {
  const Json* member = find(key);
  if (member == nullptr || member->is_null()) return std::nullopt;
  if (auto number = whole_number(*member); number && *number >= low && *number <= high)
    return number;
  fail(key, fmt::format("must be a whole number from {} to {}", low, high));
  return std::nullopt;
}

std::optional<uint64_t> ObjectReader::number_or_null(const char* key, uint64_t when_null) {
  const Json* member = find(key);
  if (member == nullptr) return std::nullopt;
  if (member->is_null()) return when_null;
  if (auto number = whole_number(*member)) return number;
  fail(key, "must be a whole number of bytes, or null");
  return std::nullopt;
}

Result<void> ObjectReader::finish() {
  if (!error_ && object_.is_object())
    for (const auto& [key, value] : object_.items())
      if (!known_.contains(key)) {
        error_ = Error{.code = ErrorCode::kBadRequest,
                       .object = key,
                       .message = "no such key",
                       .hint = fmt::format("known are: {}", fmt::join(known_, ", "))};
        if (known_.empty()) error_->hint = "this method takes none";
        break;
      }
  if (error_) return *error_;
  return {};
}

}  // namespace memsluice
