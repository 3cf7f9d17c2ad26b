// SPDX-License-Identifier: GPL-2.0
#include "daemon/api/protocol.h"

namespace memsluice {
namespace {

Error bad_request(std::string object, std::string message) {
  return {.code = ErrorCode::kBadRequest,
          .object = std::move(object),
          .message = std::move(message),
          .hint = "a request is {\"id\": 1, \"method\": \"status\"}, maybe with \"params\""};
}

}  // namespace

Result<Request> parse_request(std::string_view line, Json& id, bool& not_json) {
  auto parsed = parse_json(line, kRequestDepthMax);
  not_json = !parsed.ok();
  if (not_json) return std::move(parsed).error();
  if (!parsed->is_object()) return bad_request("", "a request is an object");

  Request request;
  for (auto& [key, value] : parsed->items()) {
    if (key == "id") {
      if (!value.is_string() && !value.is_number_integer())
        return bad_request("id", "must be a string or a whole number");
      id = value;
    }
  }
  if (id.is_null()) return bad_request("id", "is missing");
  request.id = id;
  for (auto& [key, value] : parsed->items()) {
    if (key == "method" && value.is_string())
      request.method = value.get<std::string>();
    else if (key == "params" && value.is_object())
      request.params = std::move(value);
    else if (key == "method" || key == "params")
      return bad_request(key, key == "method" ? "must be a string" : "must be an object");
    else if (key != "id")
      return bad_request(key, "no such key");
  }
  if (request.method.empty()) return bad_request("method", "is missing");
  return request;
}

std::string result_line(const Json& id, const Json& result) {
  return to_line({{"id", id}, {"result", result}});
}

std::string error_line(const Json& id, const Error& error) {
  return to_line({{"id", id}, {"error", error_to_json(error)}});
}

}  // namespace memsluice
