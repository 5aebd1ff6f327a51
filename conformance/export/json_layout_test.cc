#include "conformance/export/json_layout.h"

#include <gtest/gtest.h>

namespace plumbline::conformance {
namespace {

using Json = nlohmann::ordered_json;

TEST(JsonLayout, ShortDocumentsTakeOneLine) {
  EXPECT_EQ(json_layout(Json{{"b", 1}, {"a", Json::array()}}), "{\"b\":1,\"a\":[]}\n");
}

TEST(JsonLayout, OnlyLongValuesAreBrokenUp) {
  Json json = Json::object();
  json["items"] = Json::array({std::string(80, 'x'), Json{{"y", std::string(60, 'y')}}});
  json["end"] = nullptr;
  EXPECT_EQ(json_layout(json), "{\n  \"items\": [\n    \"" + std::string(80, 'x') + "\",\n    {\"y\":\"" +
                                   std::string(60, 'y') + "\"}\n  ],\n  \"end\": null\n}\n");
}

TEST(JsonLayout, IsTheSameDocument) {
  Json json = Json::object();
  for (int i = 0; i < 40; ++i)
    json["key \"" + std::to_string(i)] = Json::array({i, 0.1 * i, "line\nfeed", nullptr, true});
  const std::string text = json_layout(json);
  EXPECT_EQ(Json::parse(text), json);
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) EXPECT_LE(end - at, 120u);
}

}  // namespace
}  // namespace plumbline::conformance
