// A mutant makes its run fail at the result where the fault sits; without a mutant every run passes.
#include "conformance/mutants/mutants.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "conformance/corpus/corpus.h"
#include "conformance/mutants/change_bytes.h"
#include "conformance/mutants/fault_runner.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

constexpr uint64_t kMutantSeed = 5;
/// One schedule of each kind; `plumbline run` executes all of them.
constexpr const char* kMutantSchedules[] = {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "zb-v"};

/// Four stages, on the number of ranks that the schedule needs for them.
RunId over_four_stages(const std::string& id, const std::string& name) {
  const schedule::Schedule schedule = schedule_over_stages({name, ""}, 4, 0, find_case(id).microbatches);
  return {id, name, static_cast<int>(schedule.ranks.size())};
}

class Mutants : public ::testing::Test {
 protected:
  Mutants() : runner_(kMutantSeed) { at::set_num_threads(1); }

  FaultOutcome with(const std::string& mutant, const std::string& id, const std::string& schedule) {
    return runner_.run(over_four_stages(id, schedule), find_mutant(mutant).make, std::chrono::seconds(60));
  }

  FaultRunner runner_;
};

TEST(ChangeBytes, ReachesMemoryUnseenByAutograd) {
  // Transposed, and with a gradient: bytes are those of the elements in order. No device is here; the path is the same.
  const at::Tensor leaf = at::zeros({2, 3}, at::kInt).to(at::kFloat).requires_grad_();
  const at::Tensor tensor = leaf.t();
  const auto version = tensor._version();
  change_bytes(tensor, [](std::span<std::byte> bytes) {
    ASSERT_EQ(bytes.size(), 24U);
    for (size_t i = 0; i < 6; ++i) bytes[4 * i] = static_cast<std::byte>(i);
  });
  flip_last_bit(tensor);
  const auto* numbers = static_cast<const int32_t*>(leaf.const_data_ptr());
  EXPECT_EQ(std::vector<int32_t>(numbers, numbers + 6), (std::vector<int32_t>{1, 2, 4, 1, 3, 5}));
  EXPECT_EQ(tensor._version(), version);
}

TEST_F(Mutants, WithoutOneEverythingPasses) {
  for (const char* id : {"exact-mlp-mean", "exact-skip", "mlp"})
    for (const char* schedule : kMutantSchedules) {
      const FaultOutcome& outcome = runner_.untouched(over_four_stages(id, schedule));
      EXPECT_EQ(outcome.status, Status::Pass) << outcome.reason;
      EXPECT_EQ(outcome.happened, 0);
    }
}

TEST_F(Mutants, DroppedLastGradientIsNamed) {
  for (const char* id : {"exact-mlp-mean", "mlp"})
    for (const char* schedule : kMutantSchedules) {
      SCOPED_TRACE(schedule);
      const FaultOutcome outcome = with("drop-last-microbatch", id, schedule);
      ASSERT_EQ(outcome.status, Status::Fail);
      EXPECT_GT(outcome.happened, 0);
      EXPECT_EQ(outcome.first->kind, reference::ResultKind::Partial) << outcome.reason;
      EXPECT_EQ(outcome.first->microbatch, find_case(id).microbatches - 1);
      EXPECT_EQ(outcome.first->stage, 3);
      EXPECT_NE(outcome.first->name, "");
    }
}

TEST_F(Mutants, SwappedOutputsAreNamedWhereTheyWereFirstUsed) {
  for (const char* id : {"exact-mlp-mean", "mlp"}) {
    const FaultOutcome outcome = with("swap-microbatches", id, "gpipe");
    ASSERT_EQ(outcome.status, Status::Fail);
    EXPECT_EQ(outcome.first->kind, reference::ResultKind::Forward) << outcome.reason;
    EXPECT_EQ(outcome.first->microbatch, 0);
    EXPECT_EQ(outcome.first->stage, 1);
  }
}

TEST_F(Mutants, ScaledGradientIsNamedWhereItBegins) {
  for (const char* id : {"exact-mlp-mean", "mlp"})
    for (const char* schedule : kMutantSchedules) {
      SCOPED_TRACE(schedule);
      const FaultOutcome outcome = with("scale-stage-gradient", id, schedule);
      ASSERT_EQ(outcome.status, Status::Fail);
      EXPECT_EQ(outcome.first->kind, reference::ResultKind::Partial) << outcome.reason;
      EXPECT_EQ(outcome.first->microbatch, 0);
      EXPECT_EQ(outcome.first->stage, 0);
    }
}

/// Without frozen parameters `frozen-learns` changes nothing, so it never happened.
TEST_F(Mutants, OneThatChangesNothingDoesNotHappen) {
  const auto [exact, why] = runner_.kill(over_four_stages("exact-mlp-bf16", "gpipe"), find_mutant("value-in-bf16"));
  EXPECT_EQ(exact, Kill::NotApplicable);
  EXPECT_EQ(why, "float32");
  EXPECT_EQ(with("frozen-learns", "exact-mlp-sum", "gpipe").happened, 0);
  EXPECT_EQ(runner_.kill(over_four_stages("exact-mlp-sum", "gpipe"), find_mutant("frozen-learns")).first,
            Kill::NeverHappened);
  EXPECT_EQ(runner_.kill(over_four_stages("exact-frozen", "gpipe"), find_mutant("frozen-learns")).first, Kill::Fail);
}

TEST_F(Mutants, EachHasANameOfItsOwnAndASentence) {
  std::set<std::string> names, sentences;
  for (const Mutant& mutant : mutants()) {
    EXPECT_TRUE(names.insert(mutant.name).second) << mutant.name;
    EXPECT_TRUE(sentences.insert(mutant.what).second) << mutant.what;
    EXPECT_TRUE(mutant.what.ends_with('.') && mutant.what.find(". ") == std::string::npos) << mutant.what;
  }
  EXPECT_GE(names.size(), 100U);
}

TEST_F(Mutants, AnUnknownOneIsRefusedWithThoseThereAre) {
  const std::string why = testing::refusal([] { find_mutant("nonesuch"); });
  for (const Mutant& mutant : mutants()) testing::expect_part(why, mutant.name);
}

}  // namespace
}  // namespace plumbline::conformance
