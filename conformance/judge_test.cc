// The judge on results that are right, and on results with one thing wrong: it must find that thing first.
#include "conformance/judge.h"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/backend/host_tensors.h"
#include "conformance/corpus.h"
#include "conformance/expectation.h"
#include "reference/detached_run.h"
#include "runtime/error.h"
#include "runtime/schedule/generators.h"

namespace plumbline {
namespace {

constexpr uint64_t kSeed = 3;
constexpr int kRanks = 2;

TensorMap right_results(const Case& c) {
  std::vector<int> ascending;
  for (int m = 0; m < c.microbatches; ++m) ascending.push_back(m);
  return to_host(run_detached(c, kSeed, StageOrders(kRanks, {ascending, ascending})));
}

/// Multiplies one float32 element.
void scale_element(HostTensor& tensor, int64_t index, float factor) {
  float value;
  std::memcpy(&value, tensor.data.data() + index * 4, 4);
  value *= factor;
  std::memcpy(tensor.data.data() + index * 4, &value, 4);
}

std::string first_key_of(const TensorMap& results, ResultKind kind) {
  for (const auto& [key, tensor] : results)
    if (parse_result_key(key).kind == kind) return key;
  return "";
}

TEST(Judge, PassesWhatIsRightOfEveryKindOfTruth) {
  Judge judge(kRanks, kSeed);
  for (const char* id : {"exact-mlp-mean", "exact-tied", "mlp", "uneven-mean"}) {
    for (const std::string& schedule : schedule_names()) {
      const CaseVerdict verdict = judge.judge(find_case(id), schedule, right_results(find_case(id)));
      EXPECT_EQ(verdict.status, Status::Pass) << sentence(verdict);
      EXPECT_GT(verdict.tensors, 20) << id;
    }
  }
}

TEST(Judge, NamesStageMicrobatchAndTensorOfTheFirstDifference) {
  Judge judge(kRanks, kSeed);
  for (const char* id : {"exact-mlp-mean", "mlp"}) {
    const Case& c = find_case(id);
    for (ResultKind kind : {ResultKind::Forward, ResultKind::Loss, ResultKind::Backward, ResultKind::Partial,
                            ResultKind::Grad, ResultKind::Param}) {
      TensorMap results = right_results(c);
      const std::string key = first_key_of(results, kind);
      ASSERT_FALSE(key.empty());
      HostTensor& tensor = results.at(key);
      int64_t index = 0;
      while (element_as_double(tensor, index) == 0) ++index;
      scale_element(tensor, index, 1.001f);
      const CaseVerdict verdict = judge.judge(c, "gpipe", results);
      ASSERT_EQ(verdict.status, Status::Fail) << id << " " << key;
      EXPECT_EQ(to_string(verdict.first->key), key);
      EXPECT_EQ(verdict.first->index, index);
      EXPECT_EQ(verdict.differing, 1);
    }
  }
}

TEST(Judge, AMissingAndAnUnexpectedResultAreFailures) {
  Judge judge(kRanks, kSeed);
  const Case& c = find_case("exact-mlp-mean");
  TensorMap results = right_results(c);
  const std::string key = first_key_of(results, ResultKind::Grad);
  HostTensor taken = results.at(key);
  results.erase(key);
  EXPECT_EQ(judge.judge(c, "gpipe", results).first->what, DifferenceKind::Missing);
  results.emplace(key, taken);
  results.emplace("0/grad/-/-/never.heard.of", taken);
  EXPECT_EQ(judge.judge(c, "gpipe", results).first->what, DifferenceKind::Unexpected);
  EXPECT_EQ(judge.judge(c, "gpipe", {}).status, Status::Fail);
}

TEST(Judge, BoundedTruthRefusesALostMicrobatchAndAScaledGradient) {
  const Case& c = find_case("uneven-mean");
  Judge judge(kRanks, kSeed);
  for (const float factor : {0.75f, 1.001f}) {
    TensorMap results = right_results(c);
    for (auto& [key, tensor] : results)
      if (parse_result_key(key).kind == ResultKind::Grad)
        for (int64_t i = 0; i < element_count(tensor); ++i) scale_element(tensor, i, factor);
    const CaseVerdict verdict = judge.judge(c, "gpipe", results);
    EXPECT_EQ(verdict.status, Status::Fail) << factor;
  }
  // One unit in the last place of every gradient is rounding, and passes.
  TensorMap results = right_results(c);
  for (auto& [key, tensor] : results)
    if (parse_result_key(key).kind == ResultKind::Grad)
      for (int64_t i = 0; i < element_count(tensor); ++i) scale_element(tensor, i, 1.0f + 0x1p-23f);
  EXPECT_EQ(judge.judge(c, "gpipe", results).status, Status::Pass);
}

TEST(Judge, ExactnessIsProvenAndItsLimitIsSeen) {
  for (const Case& c : corpus()) {
    if (c.truth != Truth::Exact) continue;
    EXPECT_EQ(exactness_problem(c, kSeed), "") << c.id;
  }
  Case too_large = find_case("exact-mlp-mean");
  too_large.rows = 1 << 12;
  too_large.dtype = Dtype::BF16;
  EXPECT_NE(exactness_problem(too_large, kSeed), "");
  Case odd = find_case("exact-mlp-mean");
  odd.microbatches = 3;
  EXPECT_NE(exactness_problem(odd, kSeed), "");
}

TEST(Judge, AnotherNumberOfMicrobatchesDemotesOpenly) {
  std::string note;
  EXPECT_EQ(with_microbatches(find_case("exact-mlp-mean"), 3, note).truth, Truth::SameOrder);
  EXPECT_NE(note, "");
  note.clear();
  EXPECT_EQ(with_microbatches(find_case("exact-mlp-mean"), 2, note).truth, Truth::Exact);
  EXPECT_EQ(note, "");
}

TEST(Judge, RanksThatDisagreeOnACopyAreRefused) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "plumbline_judge_test";
  std::filesystem::create_directories(folder);
  write_tensor_file(folder / "a", {{"0/grad/-/-/w", make_f64({2}, {1, 2})}, {"0/grad/-/-/b", make_f64({}, {1})}});
  write_tensor_file(folder / "b", {{"0/grad/-/-/w", make_f64({2}, {1, 2})}});
  write_tensor_file(folder / "c", {{"0/grad/-/-/w", make_f64({2}, {1, 3})}});
  EXPECT_EQ(merge_rank_files({folder / "a", folder / "b"}).size(), 2u);
  EXPECT_THROW(merge_rank_files({folder / "a", folder / "c"}), Error);
  EXPECT_THROW(merge_rank_files({folder / "a", folder / "nowhere"}), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace plumbline
