#include "runtime/io/json_place.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/testing/refusal.h"

namespace plumbline {
namespace {

std::string refusal(const std::string& text, const std::function<void(const JsonPlace&)>& read) {
  return testing::refusal([&] {
    const nlohmann::json json = parse_json(text, "f.json");
    read(JsonPlace(json, "f.json"));
  });
}

TEST(JsonPlace, ErrorsSayWhereAndWhatWasExpected) {
  using Place = const JsonPlace&;
  const auto nothing = [](Place) {};
  EXPECT_EQ(refusal(R"({"a":1,"a":2})", nothing), "f.json names \"a\" twice");
  EXPECT_NE(refusal("{\"a\":\n", nothing).find("f.json is not JSON: "), std::string::npos);
  EXPECT_EQ(refusal(std::string("{}\0{", 4), nothing), "f.json is not JSON: it has a NUL byte");
  EXPECT_EQ(refusal("{\"a\":\n", nothing).find('\n'), std::string::npos);
  EXPECT_EQ(refusal(R"({"a":1})", [](Place p) { p["b"]; }), "f.json: expected an object with \"b\", not {\"a\":1}");
  EXPECT_EQ(refusal(R"({"a":[{"b":3}]})", [](Place p) { p["a"].items()[0]["b"].text(); }),
            "f.json: a[0].b: expected a string, not 3");
  EXPECT_EQ(refusal("[1,2]", [](Place p) { p.items(3); }), "f.json: expected a list of 3, not [1,2]");
  EXPECT_EQ(refusal("[1,2]", [](Place p) { p.find("a"); }), "f.json: expected an object, not [1,2]");
  EXPECT_EQ(refusal("[1,2]", [](Place p) { p.members("an object of x"); }),
            "f.json: expected an object of x, not [1,2]");
  EXPECT_EQ(refusal("7", [](Place p) { p.integer(0, 6); }), "f.json: expected an integer from 0 to 6, not 7");
  EXPECT_EQ(refusal("-1", [](Place p) { p.integer(0); }), "f.json: expected an integer from 0, not -1");
  EXPECT_EQ(refusal("1.0", [](Place p) { p.integer(); }), "f.json: expected an integer, not 1.0");
  EXPECT_EQ(refusal("9223372036854775808", [](Place p) { p.integer(); }),
            "f.json: expected an integer, not 9223372036854775808");
  EXPECT_EQ(refusal("1", [](Place p) { p.boolean(); }), "f.json: expected true or false, not 1");
  EXPECT_EQ(refusal("\"c\"", [](Place p) { p.one_of({"a", "b"}); }), "f.json: expected one of a, b, not \"c\"");
  EXPECT_EQ(refusal(R"({"a":1,"z":2})", [](Place p) { p.expect_only({"a", "b"}); }),
            "f.json: expected an object with no other members than a, b (here is \"z\"), not {\"a\":1,\"z\":2}");
  // Names from the file stay on the line, and short.
  EXPECT_EQ(
      refusal("{\"b\\n\\u001b\":1}", [](Place p) { p.expect_only({"a"}); }),
      "f.json: expected an object with no other members than a (here is \"b\\n\\u001b\"), not {\"b\\n\\u001b\":1}");
  EXPECT_EQ(refusal("{\"b\\n\\u001b\":[1]}", [](Place p) { p["b\n\x1b"].items()[0].text(); }),
            "f.json: b \\x1b[0]: expected a string, not 1");
  const std::string name(100'000, 'n');
  EXPECT_LT(refusal("{\"" + name + "\":1}", [](Place p) { p.expect_only({"a"}); }).size(), 300u);
  EXPECT_LT(refusal("{\"" + name + "\":1}", [&](Place p) { p[name.c_str()].text(); }).size(), 600u);
  EXPECT_LT(refusal("{\"" + name + "\":1,\"" + name + "\":1}", nothing).size(), 300u);
}

TEST(JsonPlace, RefusesWhatWouldOverflowTheStack) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse_json(nested(200), "f.json"));
  for (const int depth : {201, 1'000'000}) EXPECT_THROW(parse_json(nested(depth), "f.json"), InputError);
}

TEST(JsonPlace, ReadsWhatIsThere) {
  const nlohmann::json json = parse_json(R"({"n":-9223372036854775808,"l":[1,2],"t":"b","f":true,"z":null})", "x");
  const JsonPlace place(json, "x");
  EXPECT_EQ(place["n"].integer(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(place["l"].integers(1), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(place["t"].one_of({"a", "b"}), 1u);
  EXPECT_TRUE(place["f"].boolean());
  EXPECT_EQ(place.members().front().first, "f");
  EXPECT_EQ(place.members()[3].second.text(), "b");
  EXPECT_TRUE(place["z"].is_null());
  EXPECT_FALSE(place.find("none").has_value());
}

}  // namespace
}  // namespace plumbline
