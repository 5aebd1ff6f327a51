#include "conformance/protocol/protocol.h"

#include <gtest/gtest.h>

#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

const char* const kDescription = R"({"protocol": 1, "name": "n", "version": "v", "schedules": ["gpipe"],
  "delivers": ["loss", "grad"], "level": "stage", "order": "own", "libtorch": "2.15.0", "features": ["cpu"], "wire": ["slow", "poison"]})";

TEST(Description, IsReadAndWrittenBack) {
  const BackendDescription read = parse_description(kDescription, "b");
  for (const BackendDescription& d : {read, parse_description(description_text(read), "b")}) {
    EXPECT_EQ(d.name + d.version + d.libtorch, "nv2.15.0");
    EXPECT_EQ(d.wire, (std::vector<std::string>{"slow", "poison"}));
    EXPECT_EQ(d.features, std::vector<std::string>{"cpu"});
    EXPECT_EQ(d.schedules, std::vector<std::string>{"gpipe"});
    EXPECT_EQ(d.delivers,
              (std::vector<reference::ResultKind>{reference::ResultKind::Loss, reference::ResultKind::Grad}));
    EXPECT_EQ(d.level, CaseLevel::Stage);
    EXPECT_FALSE(d.follows_order);
  }
}

TEST(Description, WhatMayBeLeftOut) {
  const BackendDescription d = parse_description(
      R"({"protocol": 1, "name": "n", "version": "v", "schedules": "any", "delivers": ["loss"], "level": "model"})",
      "b");
  EXPECT_FALSE(d.schedules.has_value());
  EXPECT_TRUE(d.follows_order && d.features.empty() && d.libtorch.empty() && d.wire.empty());
  EXPECT_EQ(d.level, CaseLevel::Model);
}

TEST(Description, LongNamesAndReasonsAreShortened) {
  const std::string text(600, 'x'), kept = std::string(500, 'x') + "... (100 more characters)";
  const BackendDescription d =
      parse_description(R"({"protocol": 1, "name": ")" + text + R"(", "version": ")" + text +
                            R"(", "schedules": "any", "delivers": ["loss"], "level": "stage"})",
                        "b");
  EXPECT_EQ(d.name, kept);
  EXPECT_EQ(d.version, kept);
  const Job job{.cases = {{"mlp", "gpipe"}}};
  const auto answers =
      parse_plan(R"([{"id": "mlp", "schedule": "gpipe", "supported": false, "why": ")" + text + "\"}]", job, "b");
  EXPECT_EQ(answers.at(0)->why, kept);
}

const char* const kOwnDescription = R"({"protocol": 1, "name": "n", "version": "v", "schedules": ["1F1B", "GPipe"],
  "delivers": ["forward", "grad"], "level": "own", "models": ["net", "net.2"]})";

TEST(Description, CustomModels) {
  const BackendDescription read = parse_description(kOwnDescription, "b");
  for (const BackendDescription& d : {read, parse_description(description_text(read), "b")}) {
    EXPECT_EQ(d.level, CaseLevel::Own);
    EXPECT_EQ(d.models, (std::vector<std::string>{"net", "net.2"}));
    EXPECT_EQ(d.schedules, (std::vector<std::string>{"1F1B", "GPipe"}));
  }
}

TEST(Description, AnythingElseIsRefusedWithItsPlace) {
  const auto changed = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  const auto with = [&](const std::string& from, const std::string& to) { return changed(kDescription, from, to); };
  const auto own = [&](const std::string& from, const std::string& to) { return changed(kOwnDescription, from, to); };
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"hello", "b is not JSON: "},
           {"", "b is not JSON: "},
           {std::string(kDescription).append("x"), "b is not JSON: "},
           {"[]", "b: expected an object"},
           {"{}", "b: expected an object with \"protocol\""},
           {with("\"poison\"", "\"fast\""), "b: wire[1]: expected one of slow, poison, shuffle, not \"fast\""},
           {with("\"protocol\": 1", "\"protocol\": 2"), "b: protocol: protocol 2; this plumbline supports 1"},
           {with("\"level\": \"stage\"", "\"level\": \"module\""),
            "b: level: expected one of program, stage, model, own"},
           {with("[\"loss\", \"grad\"]", "[]"), "b: delivers: expected at least one of forward, output"},
           {with("\"grad\"", "\"gradient\""), "b: delivers[1]: expected one of forward, output"},
           {with("\"grad\"", "\"loss\""), "b: delivers[1]: \"loss\" appears twice"},
           {own("\"grad\"", "\"forward\""), "b: delivers[1]: \"forward\" appears twice"},
           {with("[\"gpipe\"]", "\"all\""), "b: schedules: expected one of any"},
           {with("\"features\"", "\"feature\""), "b: expected an object with no other members"},
           {with("\"n\"", "3"), "b: name: expected a string, not 3"},
           {with("\"features\"", "\"models\""), "b: models: only a backend of level \"own\" has models"},
           {own("\"models\"", "\"features\""), "b: expected an object with \"models\""},
           {own("[\"net\", \"net.2\"]", "[]"), "b: models: expected a list of at least one name"},
           {own("net.2", "../net"), "b: models[1]: expected a name of letters"},
           {own("net.2", ".net"), "b: models[1]: expected a name of letters"},
           {own("net.2", "net"), "b: models[1]: \"net\" appears twice"},
           {own("GPipe", "one-rank"), "b: schedules[1]: \"one-rank\" is reserved for the run on one rank"},
           {own("[\"1F1B\", \"GPipe\"]", "\"any\""), "b: schedules: expected the names of its schedules"},
           {own("\"grad\"", "\"param\""), "b: delivers[1]: expected one of forward, loss, backward"},
       }) {
    testing::expect_line(testing::refusal([&] { parse_description(text, "b"); }), expected);
  }
}

TEST(StrayWords, AreQuotedWithTheExpectation) {
  const std::string object = "; expected one JSON object and nothing else; other output belongs on standard error";
  const std::string list = "; expected one JSON list and nothing else; other output belongs on standard error";
  const std::string describe = kDescription, plan = R"([{"id": "a"}])";
  for (const auto& [printed, bracket, expected] : std::vector<std::tuple<std::string, char, std::string>>{
           {describe, '{', ""},
           {"\n" + describe + "\r\n", '{', ""},
           {plan, '[', ""},
           {"", '{', "nothing on standard output" + object},
           {" \n", '[', "nothing on standard output" + list},
           {"hello\n", '{', "\"hello\" on standard output is not JSON" + object},
           {"a warning\n" + describe, '{', "\"a warning\" on standard output before the JSON" + object},
           {"dots ... " + describe, '{', "\"dots ...\" on standard output before the JSON" + object},
           {"{so} it\nbegins\n" + describe, '{', "\"{so} it begins\" on standard output before the JSON" + object},
           {"[W1122] old\n" + plan, '[', "\"[W1122] old\" on standard output before the JSON" + list},
           {describe + "\nbye\x1b\n", '{', "\"bye\\x1b\" on standard output after the JSON" + object},
           {plan + plan, '[', "\"[{\"id\": \"a\"}]\" on standard output after the JSON" + list},
           {std::string(59, 'x') + "\u00e4 and more", '[',
            "\"" + std::string(59, 'x') + "...\" on standard output is not JSON" + list},
           // The parsers report JSON of another kind and malformed JSON.
           {"3", '{', ""},
           {plan, '{', ""},
           {"{\"a\": {\"b\": 1}", '{', ""},
           {"{\n\"a\": tru,\n\"b\": {\"c\": 1}\n}", '{', ""},
           {"[{]", '[', ""}}) {
    EXPECT_EQ(stray_words(printed, bracket), expected) << printed;
  }
}

TEST(Plan, AnswersByCaseInAnyOrder) {
  const Job job{.cases = {{"a", "gpipe"}, {"a", "1f1b"}, {"b", "1f1b"}}};
  const auto answers = parse_plan(R"([{"id": "b", "schedule": "1f1b", "supported": false, "why": "no dropout"},
                                      {"id": "a", "schedule": "gpipe", "supported": true}])",
                                  job, "b");
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_TRUE(answers[0].has_value() && answers[0]->supported);
  EXPECT_FALSE(answers[1].has_value());
  EXPECT_TRUE(answers[2].has_value() && !answers[2]->supported);
  EXPECT_EQ(answers[2].value_or(PlanAnswer{}).why, "no dropout");
}

TEST(Plan, AnythingElseIsRefused) {
  const Job job{.cases = {{"a", "gpipe"}}};
  for (
      const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
          {"{}", "b: expected a list"},
          {R"([{"id": "a", "schedule": "1f1b", "supported": true}])", "b: [0]: the job has no case a x 1f1b"},
          {R"([{"id": "a", "schedule": "gpipe", "supported": true}, {"id": "a", "schedule": "gpipe", "supported": true}])",
           "b: [1]: a second answer for a x gpipe"},
          {R"([{"id": "a", "schedule": "gpipe", "supported": false}])", "b: [0]: expected an object with a \"why\""},
          {R"([{"id": "a", "schedule": "gpipe", "supported": "yes"}])", "b: [0].supported: expected true or false"},
      }) {
    testing::expect_line(testing::refusal([&] { parse_plan(text, job, "b"); }), expected);
  }
}

}  // namespace
}  // namespace plumbline::conformance
