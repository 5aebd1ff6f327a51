#include "conformance/judge/verdict/verdict.h"
#include "conformance/judge/testing/f32.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace plumbline::conformance {
namespace {

using testing::f32;

Verdict verdict_of(const TensorMap& expected, const TensorMap& actual) {
  Verdict verdict;
  verdict.run.case_id = "exact-mlp";
  verdict.run.schedule = "1f1b";
  set_differences(verdict.finding, compare(expected, actual, CompareMode::Numeric));
  return verdict;
}

TEST(Verdict, SentenceOfTheFirstDifference) {
  std::vector<float> values(16, 1.0f);
  values[3] = 4.0f;
  std::vector<float> wrong = values;
  for (const int i : {3, 5, 7, 9, 11}) wrong[i] *= 1.001f;
  const std::string key = "0/backward/2/3/v17";
  Verdict verdict = verdict_of({{key, f32({2, 8}, values)}}, {{key, f32({2, 8}, wrong)}});
  EXPECT_EQ(sentence(verdict),
            "FAIL exact-mlp x 1f1b: step 0, stage 2, micro-batch 3: backward `v17` f32[2,8] differs in 5 of 16 "
            "elements; first at [0,3]: expected 4, got 4.004");
  verdict.finding.differing = 3;
  verdict.finding.reason = "demoted";
  EXPECT_TRUE(sentence(verdict).ends_with("got 4.004 (and 2 more tensors) [demoted]")) << sentence(verdict);
}

TEST(Verdict, ALongNameOfATensorIsShortened) {
  const std::string name(600, 'x');
  EXPECT_EQ(sentence(verdict_of({}, {{"0/grad/-/-/" + name, f32({1}, {1})}})),
            "FAIL exact-mlp x 1f1b: step 0: gradient `" + name.substr(0, 500) +
                "... (100 more characters)` f32[1] was not expected");
}

TEST(Verdict, StatesTheUlpsBetweenValuesThatShouldHaveTheSameBits) {
  const auto sentence_for = [](const char* dtype, std::vector<uint16_t> bits, std::vector<uint16_t> wrong) {
    const auto tensor = [&](const std::vector<uint16_t>& values) {
      HostTensor made{dtype, {static_cast<int64_t>(values.size())}, std::vector<std::byte>(values.size() * 2)};
      std::memcpy(made.data.data(), values.data(), made.data.size());
      return made;
    };
    Verdict verdict;
    set_differences(verdict.finding,
                    compare({{"0/grad/-/-/w", tensor(bits)}}, {{"0/grad/-/-/w", tensor(wrong)}}, CompareMode::Bitwise));
    verdict.finding.truth = reference::Truth::SameOrder;
    return sentence(verdict);
  };
  EXPECT_TRUE(sentence_for("BF16", {0x3f80, 0x4000}, {0x3f80, 0x4003}).ends_with("got 2.046875, 3 ulp apart"));
  EXPECT_TRUE(sentence_for("F16", {0x3c00}, {0x3bff}).ends_with("got 0.9995117, 1 ulp apart"));
  EXPECT_TRUE(sentence_for("BF16", {0}, {0x8000}).ends_with("expected 0, got -0")) << "no distance";
  EXPECT_TRUE(sentence_for("I16", {1}, {2}).ends_with("expected 1, got 2"));

  const std::string key = "0/backward/2/3/v17";
  Verdict verdict = verdict_of({{key, f32({}, {1})}}, {{key, f32({}, {-1})}});
  EXPECT_TRUE(sentence(verdict).ends_with("expected 1, got -1")) << "whole numbers are not counted in ulp";
  verdict.finding.truth = reference::Truth::SameOrder;
  verdict.finding.differing = 2;
  EXPECT_TRUE(sentence(verdict).ends_with("got -1, 2.131e+09 ulp apart (and 1 more tensor)")) << sentence(verdict);
}

TEST(Verdict, SentencesOfOtherDifferences) {
  const HostTensor one = f32({}, {1});
  const auto text = [](const TensorMap& expected, const TensorMap& actual) {
    return sentence(compare(expected, actual, CompareMode::Numeric).at(0));
  };
  EXPECT_EQ(text({{"4/partial/1/2/a.weight", one}}, {{"4/partial/1/2/a.weight", f32({}, {2})}}),
            "step 4, stage 1, micro-batch 2: partial gradient `a.weight` f32[] differs in 1 of 1 elements; first: "
            "expected 1, got 2");
  EXPECT_EQ(text({{"0/grad/-/-/w", one}}, {}), "step 0: gradient `w` f32[] is missing");
  EXPECT_EQ(text({}, {{"0/param/-/-/w", one}}), "step 0: parameter `w` f32[] was not expected");
  EXPECT_EQ(text({{"0/loss/1/0/l", one}}, {{"0/loss/1/0/l", f32({1}, {1})}}),
            "step 0, stage 1, micro-batch 0: loss `l` has the wrong shape: expected f32[], got f32[1]");
}

TEST(Verdict, SentencesOfBoundedDifferences) {
  const std::string key = "0/grad/-/-/w";
  const auto judge = [&](double bound, double limit) {
    return sentence(compare({{key, make_f64({2}, {3, 4})}}, {{key, f32({2}, {3, 5})}}, CompareMode::Bounded,
                            {{{key, make_f64({2}, {bound, bound})}}, {{key, {limit, 0}}}})
                        .at(0));
  };
  EXPECT_EQ(judge(0.25, 1),
            "step 0: gradient `w` f32[2] is out of bounds in 1 of 2 elements; worst at [1]: expected 4, got 5 (4 "
            "times its bound)");
  EXPECT_EQ(judge(1, 0.125),
            "step 0: gradient `w` f32[2] is off as a whole: relative error norm 0.2 over its limit 0.125, no element "
            "over its bound; worst at [1]: expected 4, got 5");
}

TEST(Verdict, OtherSentences) {
  Verdict verdict;
  verdict.run.case_id = "evil\ncase\x1b[2J";
  verdict.run.schedule = "gpipe";
  verdict.finding.status = Status::Timeout;
  verdict.finding.reason = "no end within 5 s";
  EXPECT_EQ(sentence(verdict), "TIMEOUT evil case\\x1b[2J x gpipe: no end within 5 s");
  verdict = {};
  verdict.run.case_id = "a";
  verdict.run.schedule = "b";
  verdict.finding.status = Status::Pass;
  verdict.finding.truth = reference::Truth::SameOrder;
  verdict.finding.tensors = 12;
  verdict.finding.checked = {"forward", "grad"};
  EXPECT_EQ(sentence(verdict), "PASS a x b: 12 tensors (forward, grad) equal bit for bit");
}

TEST(Verdict, ListsAtMostTwentyDifferences) {
  TensorMap expected;
  for (int m = 0; m < 30; ++m) expected["0/forward/0/" + std::to_string(m) + "/a"] = f32({}, {1});
  const Verdict verdict = verdict_of(expected, {});
  EXPECT_EQ(verdict.finding.status, Status::Fail);
  EXPECT_EQ(verdict.finding.all.size(), 20u);
  EXPECT_EQ(verdict.finding.differing, 30);
  EXPECT_EQ(verdict.finding.first->key.microbatch, 0);
  EXPECT_EQ(verdict_of(expected, expected).finding.status, Status::Pass);
  EXPECT_FALSE(verdict_of(expected, expected).finding.first.has_value());
}

TEST(Verdict, StatusesHaveDistinctNamesAndSymbols) {
  std::set<std::string_view> names;
  std::set<char> symbols;
  std::string failures;
  for (const Status status : all_statuses) {
    names.insert(status_name(status));
    symbols.insert(status_symbol(status));
    if (is_failure(status)) failures += std::string(status_name(status)) + " ";
    EXPECT_EQ(worse(status, Status::Fail), Status::Fail);
    EXPECT_EQ(worse(Status::Unsupported, status), status);
  }
  EXPECT_EQ(names.size(), 10u);
  EXPECT_EQ(symbols.size(), 10u);
  EXPECT_EQ(failures, "fail error timeout mistrusted xpass ");
  EXPECT_EQ(worse(Status::Pass, Status::NotRun), Status::NotRun);
}

}  // namespace
}  // namespace plumbline::conformance
