// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/json.h"

#include <gtest/gtest.h>

namespace memsluice {
namespace {

TEST(JsonDepth, CountsBracketsOutsideOfStrings) {
  EXPECT_EQ(json_depth("1"), 0u);
  EXPECT_EQ(json_depth("{}"), 1u);
  EXPECT_EQ(json_depth(R"([{"a": []}, [[]]])"), 3u);
  EXPECT_EQ(json_depth(R"(["[[[[", "\"[[", "\\", []])"), 2u);
  EXPECT_EQ(json_depth("]]]]["), 1u);
  EXPECT_EQ(json_depth("[\"\\"), 1u);
}

TEST(ParseJson, RefusesWhatIsTooDeepOrNoJson) {
  EXPECT_TRUE(parse_json("[[[]]]", 3).ok());
  EXPECT_EQ(parse_json("[[[[]]]]", 3).error().message, "nested more than 3 deep");
  EXPECT_EQ(parse_json("", 3).error().message, "not JSON");
  EXPECT_EQ(parse_json("{} {}", 3).error().message, "not JSON");
  EXPECT_EQ(parse_json("\"\xff\"", 3).error().message, "not JSON");
}

TEST(ToLine, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(to_line("/a\xff"), "\"/a\xEF\xBF\xBD\"\n");
}

TEST(ErrorJson, LeadsBack) {
  Error error{
      .code = ErrorCode::kNotFound, .object = "/a", .message = "no such cgroup", .hint = "look"};
  EXPECT_EQ(error_from_json(error_to_json(error)), error);
  EXPECT_EQ(error_to_json(error.with_context("opening")).at("message"), "opening: no such cgroup");
  EXPECT_EQ(error_from_json(Json{{"code", "nonsense"}}), std::nullopt);
  EXPECT_EQ(error_from_json(Json(7)), std::nullopt);
}

TEST(ObjectReader, ReadsWhatIsThere) {
  Json object = {
      {"flag", true}, {"name", "x"}, {"count", 7}, {"limit", nullptr}, {"none", nullptr}};
  ObjectReader reader(object);
  EXPECT_EQ(reader.boolean("flag"), true);
  EXPECT_EQ(reader.require("name", reader.text("name")), "x");
  EXPECT_EQ(reader.number("count", 7, 7), 7u);
  EXPECT_EQ(reader.number_or_null("limit", 42), 42u);
  EXPECT_EQ(reader.number("none", 1, 2), std::nullopt);
  EXPECT_EQ(reader.text("absent"), std::nullopt);
  EXPECT_TRUE(reader.finish().ok());
}

std::string complaint(const Json& object, void (*read)(ObjectReader&)) {
  ObjectReader reader(object);
  read(reader);
  auto finished = reader.finish();
  return finished.ok() ? "none" : finished.error().describe();
}

TEST(ObjectReader, NamesTheKeyAndWhatIsWrong) {
  EXPECT_EQ(complaint({{"a", 1}}, [](ObjectReader& r) { r.boolean("a"); }),
            "a: must be true or false");
  EXPECT_EQ(complaint({{"a", 1}}, [](ObjectReader& r) { r.text("a"); }), "a: must be a string");
  EXPECT_EQ(complaint(Json::object(), [](ObjectReader& r) { r.require("a", r.text("a")); }),
            "a: is missing");
  EXPECT_EQ(complaint(Json::array(), [](ObjectReader&) {}), "must be an object");
  EXPECT_EQ(complaint({{"z", 1}}, [](ObjectReader& r) { r.text("a"), r.text("b"); }),
            "z: no such key (known are: a, b)");
  EXPECT_EQ(complaint({{"z", 1}}, [](ObjectReader&) {}), "z: no such key (this method takes none)");
  for (const Json& wrong : {Json(0), Json(9), Json(-1), Json(1.0), Json("1"), Json(true)})
    EXPECT_EQ(complaint({{"a", wrong}}, [](ObjectReader& r) { r.number("a", 1, 8); }),
              "a: must be a whole number from 1 to 8")
        << wrong;
  EXPECT_EQ(complaint({{"a", -1}}, [](ObjectReader& r) { r.number_or_null("a", 0); }),
            "a: must be a whole number of bytes, or null");
}

}  // namespace
}  // namespace memsluice
