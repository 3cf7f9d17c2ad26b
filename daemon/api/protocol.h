// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>
#include <string_view>

#include "daemon/base/json.h"
#include "daemon/base/result.h"

namespace memsluice {

// docs/api.md: one JSON object a line.
inline constexpr int kApiVersion = 1;
inline constexpr size_t kRequestBytesMax = 64 * 1024;
inline constexpr size_t kRequestDepthMax = 8;

struct Request {
  Json id;  // null until it is known
  std::string method = {};
  Json params = Json::object();
};

// Of one line without its end. `not_json` is set where the connection is not to be trusted further;
// `id` is the request's, as far as it has one, also where the result is an error.
Result<Request> parse_request(std::string_view line, Json& id, bool& not_json);

std::string result_line(const Json& id, const Json& result);
std::string error_line(const Json& id, const Error& error);

}  // namespace memsluice
