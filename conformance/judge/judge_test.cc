// The judge on correct results, and on results with one defect, which it must name first.
#include "conformance/judge/judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "conformance/corpus/corpus.h"
#include "conformance/judge/compare.h"
#include "conformance/judge/expectation.h"
#include "reference/host_results.h"
#include "reference/oracle/detached_run.h"
#include "reference/oracle/whole_model.h"
#include "runtime/error.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/testing/in_full.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

constexpr uint64_t kJudgeSeed = 3;
constexpr uint64_t kUsualSeed = 1;  // that of a run and of an export unless the user names another
constexpr int kJudgedRanks = 2;

TensorMap right_results(const reference::Case& c) {
  std::vector<int> ascending;
  for (int m = 0; m < c.microbatches; ++m) ascending.push_back(m);
  return reference::to_host(reference::run_detached(
      c, kJudgeSeed, reference::StageOrders(kJudgedRanks, {reference::StageOrder{ascending, ascending}})));
}

schedule::Schedule gpipe(const reference::Case& c) {
  return schedule::make_schedule("gpipe", kJudgedRanks, c.microbatches);
}

/// Multiplies one float32 element.
void scale_element(HostTensor& tensor, int64_t index, float factor) {
  float value;
  std::memcpy(&value, tensor.data.data() + index * 4, 4);
  value *= factor;
  std::memcpy(tensor.data.data() + index * 4, &value, 4);
}

std::string first_key_of(const TensorMap& results, reference::ResultKind kind) {
  for (const auto& [key, tensor] : results)
    if (reference::parse_result_key(key).kind == kind) return key;
  return "";
}

TEST(Judge, PassesCorrectResultsOfEveryKindOfTruth) {
  Judge judge(kJudgeSeed);
  for (const char* id : {"exact-mlp-mean", "exact-tied", "mlp", "uneven-mean"}) {
    for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "zb-h2"}) {  // two stages, ascending
      const reference::Case& c = find_case(id);
      const Finding finding =
          judge.judge(c, schedule::make_schedule(schedule, kJudgedRanks, c.microbatches), right_results(c));
      EXPECT_EQ(finding.status, Status::Pass) << sentence(finding);
      EXPECT_GT(finding.tensors, 20) << id;
    }
  }
}

// Two replicas of two stages, each with its own sums. The results of a schedule with one copy fail.
TEST(Judge, ReplicasAreSummedAsTheScheduleSays) {
  const reference::Case& c = find_case("mlp");
  schedule::Schedule both = gpipe(c);
  both.name = "both ways";
  both.rank_of_stage = {0, 1, 1, 0};
  both.replica_of_microbatch = {0, 1, 0, 1};
  both.ranks.assign(2, {});
  for (const schedule::ActionType type : {schedule::ActionType::F, schedule::ActionType::B})
    for (int m = 0; m < c.microbatches; ++m)
      for (int stage = 0; stage < 2; ++stage) both.ranks[both.rank_of(stage, m)].push_back({stage, type, m});
  const std::vector<reference::StageOrder> copies = {{{0, 2}, {0, 2}}, {{1, 3}, {1, 3}}};
  Judge judge(kJudgeSeed);
  EXPECT_EQ(
      judge
          .judge(c, both, reference::to_host(reference::run_detached(c, kJudgeSeed, reference::StageOrders(2, copies))))
          .status,
      Status::Pass);
  EXPECT_EQ(judge.judge(c, both, right_results(c)).status, Status::Fail);
  const reference::Case& exact = find_case("exact-mlp-mean");
  EXPECT_EQ(
      judge
          .judge(exact, both,
                 reference::to_host(reference::run_detached(exact, kJudgeSeed, reference::StageOrders(2, copies))))
          .status,
      Status::Pass);
}

TEST(Judge, NamesStageMicrobatchAndTensorOfTheFirstDifference) {
  Judge judge(kJudgeSeed);
  for (const char* id : {"exact-mlp-mean", "mlp"}) {
    const reference::Case& c = find_case(id);
    for (reference::ResultKind kind :
         {reference::ResultKind::Forward, reference::ResultKind::Loss, reference::ResultKind::Backward,
          reference::ResultKind::Partial, reference::ResultKind::Grad, reference::ResultKind::Param}) {
      TensorMap results = right_results(c);
      const std::string key = first_key_of(results, kind);
      ASSERT_FALSE(key.empty());
      HostTensor& tensor = results.at(key);
      int64_t index = 0;
      while (element_as_double(tensor, index) == 0) ++index;
      scale_element(tensor, index, 1.001f);
      const Finding finding = judge.judge(c, gpipe(c), results);
      ASSERT_EQ(finding.status, Status::Fail) << id << " " << key;
      EXPECT_EQ(to_string(finding.first->key), key);
      EXPECT_EQ(finding.first->index, index);
      EXPECT_EQ(finding.differing, 1);
    }
  }
}

TEST(Judge, AMissingAndAnUnexpectedResultAreFailures) {
  Judge judge(kJudgeSeed);
  const reference::Case& c = find_case("exact-mlp-mean");
  TensorMap results = right_results(c);
  const std::string key = first_key_of(results, reference::ResultKind::Grad);
  HostTensor taken = results.at(key);
  results.erase(key);
  EXPECT_EQ(judge.judge(c, gpipe(c), results).first->what, DifferenceKind::Missing);
  results.emplace(key, taken);
  results.emplace("0/grad/-/-/never.heard.of", taken);
  EXPECT_EQ(judge.judge(c, gpipe(c), results).first->what, DifferenceKind::Unexpected);
  EXPECT_EQ(judge.judge(c, gpipe(c), {}).status, Status::Fail);
}

TEST(Judge, BoundedTruthRefusesALostMicrobatchAndAScaledGradient) {
  const reference::Case& c = find_case("uneven-mean");
  Judge judge(kJudgeSeed);
  for (const float factor : {0.75f, 1.001f}) {
    TensorMap results = right_results(c);
    for (auto& [key, tensor] : results)
      if (reference::parse_result_key(key).kind == reference::ResultKind::Grad)
        for (int64_t i = 0; i < element_count(tensor); ++i) scale_element(tensor, i, factor);
    const Finding finding = judge.judge(c, gpipe(c), results);
    EXPECT_EQ(finding.status, Status::Fail) << factor;
  }
  // One unit in the last place of every gradient is rounding, and passes.
  TensorMap results = right_results(c);
  for (auto& [key, tensor] : results)
    if (reference::parse_result_key(key).kind == reference::ResultKind::Grad)
      for (int64_t i = 0; i < element_count(tensor); ++i) scale_element(tensor, i, 1.0f + 0x1p-23f);
  EXPECT_EQ(judge.judge(c, gpipe(c), results).status, Status::Pass);
}

// Rounding in stage 0 changes bits of every later value and is legal: the first tensor beyond its bound is named.
TEST(Judge, BoundedTruthNamesTheFirstTensorBeyondItsBound) {
  const reference::Case& c = find_case("uneven-mean");
  Judge judge(kJudgeSeed);
  for (const char* wrong : {"0/forward/0/2/layers.3", "0/backward/1/1/layers.3", "0/partial/0/3/layers.1.fc.weight"}) {
    TensorMap results = right_results(c);
    const std::string last = "0/grad/-/-/layers.1.fc.weight";
    ASSERT_TRUE(results.contains(wrong) && results.contains(last)) << wrong;
    for (auto& [key, tensor] : results)
      if (reference::parse_result_key(key).stage == 0) scale_element(tensor, 0, 1.0f + 0x1p-23f);
    EXPECT_EQ(judge.judge(c, gpipe(c), results).status, Status::Pass);
    for (const std::string& key : {std::string(wrong), last})
      for (int64_t i = 0; i < element_count(results.at(key)); ++i) scale_element(results.at(key), i, 1.01f);
    const Finding finding = judge.judge(c, gpipe(c), results);
    ASSERT_EQ(finding.status, Status::Fail) << wrong;
    EXPECT_EQ(to_string(finding.first->key), wrong) << sentence(finding);
    EXPECT_EQ(finding.differing, 2) << sentence(finding);
    ASSERT_EQ(finding.all.size(), 2u);
    EXPECT_EQ(to_string(finding.all[1].key), last);
    EXPECT_EQ(finding.all[1].stages, std::vector<int>{0}) << sentence(finding);
  }
}

// Minus infinity, of a mask at a boundary, has no bound.
TEST(Judge, BoundedTruthNamesNoInfinityThatIsRight) {
  reference::Case c = find_case("constants");
  c.truth = reference::Truth::Bounded;
  TensorMap results = right_results(c);
  ASSERT_TRUE(std::ranges::any_of(results, [](const auto& item) {
    const HostTensor& tensor = item.second;
    for (int64_t i = 0; item.first.starts_with("0/forward/") && i < element_count(tensor); ++i)
      if (std::isinf(element_as_double(tensor, i))) return true;
    return false;
  }));
  EXPECT_EQ(Judge(kJudgeSeed).judge(c, gpipe(c), results).status, Status::Pass);
  const std::string wrong = first_key_of(results, reference::ResultKind::Grad);
  for (int64_t i = 0; i < element_count(results.at(wrong)); ++i) scale_element(results.at(wrong), i, 1.5f);
  const Finding finding = Judge(kJudgeSeed).judge(c, gpipe(c), results);
  ASSERT_EQ(finding.status, Status::Fail) << sentence(finding);
  EXPECT_EQ(to_string(finding.first->key), wrong) << sentence(finding);
  EXPECT_EQ(finding.differing, 1) << sentence(finding);
}

// Copies of a shared parameter round each by itself when stages are disturbed for the bounds.
TEST(Judge, BoundedTruthNamesTheFirstTensorWhereStagesShareParameters) {
  for (const char* id : {"transformer-bounded", "clip-shared-bounded"}) {
    const reference::Case& c = find_case(id);
    TensorMap results = right_results(c);
    const std::string wrong = first_key_of(results, reference::ResultKind::Param);
    for (int64_t i = 0; i < element_count(results.at(wrong)); ++i) scale_element(results.at(wrong), i, 1.5f);
    const Finding finding = Judge(kJudgeSeed).judge(c, gpipe(c), results);
    ASSERT_EQ(finding.status, Status::Fail) << sentence(finding);
    EXPECT_EQ(to_string(finding.first->key), wrong) << sentence(finding);
    EXPECT_EQ(finding.differing, 1) << sentence(finding);
  }
}

TEST(Judge, WhatHasNoBoundsIsNotJudgedByThem) {
  const Judge judge(kJudgeSeed);
  EXPECT_NE(judge.why_unbounded(find_case("mlp-f64"), kJudgedRanks).find("float64 results"), std::string::npos);
  for (const char* id : {"autocast", "autocast-recompute"})
    EXPECT_NE(judge.why_unbounded(find_case(id), kJudgedRanks).find("autocast"), std::string::npos);
  EXPECT_NE(judge.why_unbounded(find_case("exact-mlp-mean"), kJudgedRanks).find("kink"), std::string::npos);
  EXPECT_NE(judge.why_unbounded(find_case("dropout"), kJudgedRanks).find("random layers"), std::string::npos);
  for (const char* id : {"mlp", "transformer-bf16"}) EXPECT_EQ(judge.why_unbounded(find_case(id), kJudgedRanks), "");
  for (const reference::Case& c : corpus())
    if (c.truth == reference::Truth::Bounded) {
      EXPECT_EQ(judge.why_unbounded(c, kJudgedRanks), "") << c.id;
    }
}

TEST(Judge, ADemotionIsToldAfterAnEarlierOne) {
  reference::Case c = find_case("mlp");
  std::string note;
  EXPECT_TRUE(demote(c, {}, note));
  EXPECT_EQ(note, "judged as bounded: the backend does not compute with LibTorch");
  note.clear();
  c = with_microbatches(find_case("exact-mlp-mean"), 3, note);
  EXPECT_TRUE(demote(c, {}, note));
  EXPECT_EQ(note,
            "judged as same-order: dividing by 3 micro-batches is not exact, and then as bounded: the backend does not "
            "compute with LibTorch");
  EXPECT_EQ(c.truth, reference::Truth::Bounded);
}

// Hooks are counted: a count is right or wrong under every kind of truth.
TEST(Judge, BoundedTruthComparesTheCallsOfHooks) {
  reference::Case c = find_case("boundary-hooks");
  c.truth = reference::Truth::Bounded;
  TensorMap results = right_results(c);
  EXPECT_EQ(Judge(kJudgeSeed).judge(c, gpipe(c), results).status, Status::Pass);
  HostTensor& count = results.at(first_key_of(results, reference::ResultKind::HookCalls));
  count.data[0] ^= std::byte{2};
  EXPECT_EQ(Judge(kJudgeSeed).judge(c, gpipe(c), results).status, Status::Fail);
}

// Running statistics depend on the order of the forwards, which the whole model does not have. Those of ascending order
// are wrong, whether values are judged by their bits or by bounds.
TEST(Judge, RunningStatisticsFollowTheSchedulesForwards) {
  for (const reference::Truth truth : {reference::Truth::SameOrder, reference::Truth::Bounded}) {
    reference::Case c = find_case("own-batch-norm");
    c.truth = truth;
    schedule::Schedule schedule = gpipe(c);
    for (std::vector<schedule::Action>& actions : schedule.ranks)
      std::reverse(actions.begin(), actions.begin() + c.microbatches);
    const std::vector<int> ascending{0, 1, 2, 3}, descending{3, 2, 1, 0};
    ASSERT_EQ(c.microbatches, 4);
    const TensorMap right = reference::to_host(reference::run_detached(
        c, kJudgeSeed, reference::StageOrders(kJudgedRanks, {reference::StageOrder{descending, ascending}})));
    Judge judge(kJudgeSeed);
    const Finding finding = judge.judge(c, schedule, right);
    EXPECT_EQ(finding.status, Status::Pass) << sentence(finding);
    EXPECT_EQ(judge.judge(c, gpipe(c), right_results(c)).status, Status::Pass);

    TensorMap wrong = right;
    for (const auto& [key, tensor] : right_results(c))
      if (reference::parse_result_key(key).kind == reference::ResultKind::Buffer) wrong.at(key) = tensor;
    const Finding refused = judge.judge(c, schedule, wrong);
    ASSERT_EQ(refused.status, Status::Fail);
    EXPECT_EQ(refused.first->key.kind, reference::ResultKind::Buffer) << sentence(refused);
  }
}

// A division that is left out on each stage below the last: the factor and the stages are told.
TEST(Judge, TellsTheFactorOfEachStageAndWhatAValueIsInstead) {
  Judge judge(kJudgeSeed);
  for (const char* id : {"exact-mlp-mean", "mlp", "uneven-mean"}) {
    const reference::Case& c = find_case(id);
    TensorMap results = right_results(c);
    for (auto& [key, tensor] : results)
      if (key.starts_with("0/grad/-/-/layers.0.") || key.starts_with("0/grad/-/-/layers.1.") ||
          key.starts_with("0/grad/-/-/layers.2.") || key.starts_with("0/grad/-/-/layers.3."))
        for (int64_t i = 0; i < element_count(tensor); ++i) scale_element(tensor, i, 0.25f);
    Finding finding = judge.judge(c, gpipe(c), results);
    EXPECT_EQ(finding.pattern,
              "the gradients are 1/4 of what is expected (1/M, M = 4 micro-batches) on stage 0, right on stage 1")
        << id;
    EXPECT_NE(sentence(finding).find("gradient `layers.0.fc.bias` of stage 0 f32["), std::string::npos)
        << sentence(finding);
    results = right_results(c);
    std::swap(results.at("0/loss/-/0/loss"), results.at("0/loss/-/1/loss"));
    finding = judge.judge(c, gpipe(c), results);
    EXPECT_EQ(finding.first->likeness, "micro-batch 1's") << id << ": " << sentence(finding);
    EXPECT_EQ(finding.pattern, "");
  }
}

TEST(Judge, ExactnessIsProvenAndItsLimitIsSeen) {
  for (const reference::Case& c : corpus()) {
    if (c.truth != reference::Truth::Exact) continue;
    EXPECT_EQ(exactness_problem(c, kJudgeSeed), "") << c.id;
  }
  reference::Case too_large = find_case("exact-mlp-mean");
  too_large.rows = 1 << 12;
  too_large.dtype = reference::Dtype::BF16;
  EXPECT_NE(exactness_problem(too_large, kJudgeSeed), "");
  reference::Case odd = find_case("exact-mlp-mean");
  odd.microbatches = 3;
  EXPECT_NE(exactness_problem(odd, kJudgeSeed), "");
  reference::Case odd_evaluation = find_case("exact-mlp-mean");  // 24 elements in a micro-batch: 1/24 is rounded
  odd_evaluation.steps.emplace_back(reference::StepKind::Eval, 12);
  EXPECT_NE(exactness_problem(odd_evaluation, kJudgeSeed), "");
  odd_evaluation.steps.back().has_target = false;
  EXPECT_EQ(exactness_problem(odd_evaluation, kJudgeSeed), "") << "there is no loss";
}

TEST(Judge, MeansAreProvenExactInEveryBatchAndOverEveryTarget) {
  reference::Case lengths = find_case("exact-lengths-attention");  // sequences of 4, 2 and 3 places
  ASSERT_EQ(lengths.steps.size(), 3u);
  lengths.loss.reduction = reference::Reduction::Mean;
  testing::expect_part(exactness_problem(lengths, kJudgeSeed), "divides by 96 elements in 4 rows over 4 micro-batches");
  lengths.steps.pop_back();
  EXPECT_EQ(exactness_problem(lengths, kJudgeSeed), "");
  lengths.steps.emplace_back(reference::StepKind::Eval, 0, false);  // its loss, of the output alone, needs no target
  testing::expect_part(exactness_problem(lengths, kJudgeSeed), "divides by 96 elements");

  reference::Case heads = find_case("exact-heads");  // three outputs of 64 elements
  heads.loss.reduction = reference::Reduction::BatchMean;
  heads.division = reference::Division::Nobody;
  testing::expect_part(exactness_problem(heads, kJudgeSeed), "divides by 192 elements in all targets of 8 rows");
  reference::Case two_heads = find_case("exact-two-heads");
  two_heads.loss.reduction = reference::Reduction::BatchMean;
  two_heads.division = reference::Division::Nobody;
  EXPECT_EQ(exactness_problem(two_heads, kJudgeSeed), "");
}

TEST(Judge, AnUpdateWithGradientsOfAMeanIsNotProvenExact) {
  for (const reference::Reduction reduction : {reference::Reduction::Mean, reference::Reduction::BatchMean}) {
    reference::Case updated = find_case("exact-loss-scale");
    updated.loss.reduction = reduction;
    testing::expect_part(exactness_problem(updated, kJudgeSeed), "an update adds gradients of a mean");
  }
  reference::Case resumed = find_case("exact-resume-eval");  // the update is in the steps before
  resumed.loss.reduction = reference::Reduction::Mean;
  testing::expect_part(exactness_problem(resumed, kJudgeSeed), "an update adds gradients of a mean");
}

/// exact_test.cc proves the models with the batches that have no draw of their own.
TEST(Judge, ExactnessIsProvenForTheDrawsOfCases) {
  const uint64_t seeds = testing::in_full_or_sample(10, 2);
  for (const reference::Case& c : corpus())
    for (uint64_t seed = 0; c.truth == reference::Truth::Exact && c.data > 0 && seed < seeds; ++seed)
      EXPECT_EQ(exactness_problem(c, seed), "") << c.id << " seed " << seed;
}

/// A backend that exchanges two micro-batches, or only their losses, must not pass. (Outputs are compared for draws
/// that were chosen for it; elsewhere a parameter may be an output, the same in each micro-batch.)
TEST(Judge, NoTwoMicrobatchesOfAStepHaveTheSameLoss) {
  for (size_t i = 0; i < corpus().size(); ++i) {
    if (!testing::in_sample(i, 4)) continue;
    const reference::Case& c = corpus()[i];
    std::map<std::string, std::vector<HostTensor>> by_microbatch;  // the key without the micro-batch
    const TensorMap results = reference::to_host(reference::run_whole_model(c, kUsualSeed));
    EXPECT_EQ(first_nan(results), "") << c.id << ": agreement on it proves nothing";
    for (const auto& [key, tensor] : results) {
      reference::ResultKey place = reference::parse_result_key(key);
      if (place.kind != reference::ResultKind::Loss && (place.kind != reference::ResultKind::Output || c.data == 0))
        continue;
      place.microbatch = 0;
      std::vector<HostTensor>& others = by_microbatch[reference::to_string(place)];
      EXPECT_EQ(std::ranges::count(others, tensor), 0) << c.id << ": " << key << " equals an earlier micro-batch's";
      others.push_back(tensor);
    }
    EXPECT_FALSE(by_microbatch.empty()) << c.id;
  }
}

/// The first update overflows, so that the second step begins with infinite parameters.
TEST(Judge, MistrustsNansThatAgree) {
  reference::Case c = find_case("train-mlp");
  c.id = "overflowing";
  c.steps = {reference::StepKind::Train, reference::StepKind::Optimizer, reference::StepKind::Train};
  c.optimizer = {.learning_rate = 1e38};
  const Finding finding = Judge(kJudgeSeed).judge(c, gpipe(c), right_results(c));
  EXPECT_EQ(finding.status, Status::Mistrusted) << sentence(finding);
  EXPECT_EQ(finding.reason, "agrees, but 2/loss/-/0/loss is not a number: most faults leave a NaN what it is");
}

TEST(Judge, MistrustsAnExactCaseThatIsNotProvenExact) {
  reference::Case wrong = find_case("exact-mlp-mean");
  wrong.division = reference::Division::Engine;
  wrong.microbatches = 3;
  wrong.rows = 12;
  Judge judge(kJudgeSeed);
  const Finding finding = judge.judge(wrong, gpipe(wrong), right_results(wrong));
  EXPECT_EQ(finding.status, Status::Mistrusted);
  EXPECT_NE(finding.reason.find("not proven exact: gradients are divided by 3"), std::string::npos) << finding.reason;
  wrong.truth = reference::Truth::SameOrder;
  EXPECT_EQ(Judge(kJudgeSeed).judge(wrong, gpipe(wrong), right_results(wrong)).status, Status::Pass);
}

}  // namespace
}  // namespace plumbline::conformance
