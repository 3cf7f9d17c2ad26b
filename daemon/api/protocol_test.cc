// SPDX-License-Identifier: GPL-2.0
#include "daemon/api/protocol.h"

#include <gtest/gtest.h>

namespace memsluice {
namespace {

struct Parsed {
  Json id;
  bool not_json = false;
  Result<Request> request;
};

Parsed parse(std::string_view line) {
  Json id;
  bool not_json = false;
  auto request = parse_request(line, id, not_json);
  return {id, not_json, std::move(request)};
}

TEST(ParseRequest, TakesIdMethodAndParams) {
  auto parsed = parse(R"({"id": "x", "method": "tenant.get", "params": {"cgroup": "/a"}})");
  ASSERT_TRUE(parsed.request.ok());
  EXPECT_EQ(parsed.request->id, "x");
  EXPECT_EQ(parsed.request->method, "tenant.get");
  EXPECT_EQ(parsed.request->params.at("cgroup"), "/a");
  EXPECT_EQ(parse(R"({"id": -7, "method": "status"})").request->params, Json::object());
}

TEST(ParseRequest, GivesBackTheIdOfABadRequest) {
  auto parsed = parse(R"({"method": 7, "id": 5})");
  EXPECT_EQ(parsed.request.error().object, "method");
  EXPECT_EQ(parsed.id, 5);
  EXPECT_FALSE(parsed.not_json);
}

TEST(ParseRequest, SaysWhatIsWrong) {
  auto complaint = [](std::string_view line) {
    auto parsed = parse(line);
    return parsed.request.ok()
               ? "none"
               : parsed.request.error().object + ": " + parsed.request.error().message;
  };
  EXPECT_EQ(complaint("[]"), ": a request is an object");
  EXPECT_EQ(complaint("{}"), "id: is missing");
  EXPECT_EQ(complaint(R"({"id": 1.5, "method": "x"})"), "id: must be a string or a whole number");
  EXPECT_EQ(complaint(R"({"id": null, "method": "x"})"), "id: must be a string or a whole number");
  EXPECT_EQ(complaint(R"({"id": 1})"), "method: is missing");
  EXPECT_EQ(complaint(R"({"id": 1, "method": "x", "params": []})"), "params: must be an object");
  EXPECT_EQ(complaint(R"({"id": 1, "method": "x", "parms": {}})"), "parms: no such key");
}

TEST(ParseRequest, DoesNotTrustWhatIsNoJsonOrTooDeep) {
  EXPECT_TRUE(parse("nonsense").not_json);
  EXPECT_TRUE(parse("").not_json);
  EXPECT_TRUE(parse(R"({"id": 1, "method": "x", "params": {"a": [[[[[[[]]]]]]]}})").not_json);
}

TEST(Lines, AreOneObjectEach) {
  EXPECT_EQ(result_line(1, Json::object()), "{\"id\":1,\"result\":{}}\n");
  EXPECT_EQ(
      error_line("a\nb", {.code = ErrorCode::kDenied, .object = "o", .message = "m"}),
      "{\"error\":{\"code\":\"denied\",\"message\":\"m\",\"object\":\"o\"},\"id\":\"a\\nb\"}\n");
}

}  // namespace
}  // namespace memsluice
