#include "conformance/proof/prove.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/sub.h>
#include <gtest/gtest.h>

#include <set>

#include "conformance/backend/built_models.h"
#include "conformance/corpus/case_schedule.h"
#include "conformance/corpus/corpus.h"
#include "conformance/mutants/fault_runner.h"
#include "conformance/mutants/hooked_stage.h"
#include "conformance/mutants/hooked_steps.h"
#include "conformance/mutants/mutants.h"
#include "conformance/plan/plan.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "reference/sum_of.h"
#include "runtime/engine/stage/forwarding_runner.h"
#include "runtime/error.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/testing/in_full.h"
#include "runtime/testing/parameter_name.h"
#include "runtime/transport/forwarding_transport.h"

namespace plumbline::proof {
namespace {

using conformance::Fault;
using conformance::FaultSite;
using conformance::find_case;
using Make = std::function<Fault(const FaultSite&)>;

constexpr uint64_t kSeed = 1;

ProofOptions options_for(const reference::Case& c, const std::string& schedule, int ranks) {
  ProofOptions options;
  options.schedule = conformance::case_schedule(c, {schedule, c.schedule_csv}, ranks);
  options.seed = kSeed;
  options.recompute.policy = engine::parse_recompute(c.recompute);
  return options;
}

Proof prove_case(const reference::Case& c, const std::string& schedule, int ranks, Make fault = {},
                 Claim claim = Claim::SameComputation) {
  ProofOptions options = options_for(c, schedule, ranks);
  options.claim = claim;
  options.fault = std::move(fault);
  return prove(c, options);
}

/// Cases of core whose pipelined run is another computation than the unsplit one; a part of the sentence that says so.
struct NotProven {
  const char *model, *because;
};
constexpr NotProven kNotProven[] = {
    // A stage with several readers of a value adds their gradients before it sends the sum; the unsplit model adds all
    // readers' one by one.
    {"exact-divided-skips", "are added in another order"},
    {"exact-read-by-all", "are added in another order"},
    // Linear of rows that do not lie together is mm and add; the engine sends them contiguous, and it is addmm.
    {"encoder-decoder", "found aten::addmm"},
    {"exact-encoder-decoder", "found aten::addmm"},
    {"exact-lengths-skips", "found aten::addmm"},
    // A proof does not follow several parameters in one memory.
    {"flat-parameters", "bytes that no operator made"},
    {"exact-flat-parameters", "bytes that no operator made"},
};

std::string because(const reference::Case& c) {
  for (const NotProven& known : kNotProven)
    if (c.model == known.model || c.id == known.model) return known.because;
  return {};
}

/// Proves, or expects the known reason.
void expect_proven(const reference::Case& c, const std::string& schedule, int ranks, conformance::ModelFacts& models,
                   int& proven) {
  ProofOptions options;
  try {
    options = options_for(c, schedule, ranks);
  } catch (const InputError&) {
    return;  // the schedule does not exist for these numbers
  }
  if (!conformance::why_unsupported(c, options.schedule, models).empty()) return;
  SCOPED_TRACE(c.id + " x " + schedule);
  const Proof proof = prove(c, options);
  if (proof.outcome == Outcome::Proven) {
    EXPECT_EQ(proof.why, "");
    EXPECT_FALSE(proof.results.empty());
    EXPECT_EQ(proof.log.unseen_writes, 0);
    ++proven;
    return;
  }
  const std::string known = because(c);
  EXPECT_NE(known, "") << proof.why;
  EXPECT_NE(proof.why.find(known), std::string::npos) << proof.why;
}

TEST(Prove, AFewCasesUnderEverySchedule) {
  const auto models = conformance::built_models(kSeed);
  int proven = 0;
  for (const char* id : {"exact-mlp-sum", "exact-tied", "exact-skip", "multi-io"})
    for (const std::string& schedule : schedule::schedule_names())
      expect_proven(find_case(id), schedule, 2, *models, proven);
  EXPECT_GE(proven, 60);
}

TEST(Prove, ACaseOfEveryModelWithWholeBackwardsAndWithHalves) {
  const auto models = conformance::built_models(kSeed);
  int proven = 0;
  std::set<std::string> seen;
  for (const reference::Case& c : conformance::corpus()) {
    if (!c.schedule_csv.empty() || !why_not_provable(c).empty() || !seen.insert(c.model).second) continue;
    if (!testing::in_sample(seen.size(), 4)) continue;
    expect_proven(c, "1f1b", 4, *models, proven);
    expect_proven(c, "zb-h1", 4, *models, proven);
  }
  EXPECT_GE(proven, testing::in_full_or_sample(100, 25));
}

TEST(Prove, StagesThatRunAgain) {
  for (const char* id : {"exact-mlp-sum", "resnet-bn", "dropout", "transformer-lm"}) {
    SCOPED_TRACE(id);
    ProofOptions again = options_for(find_case(id), "zb-h1", 2);
    again.recompute.policy = engine::Recompute::Always;
    const Proof proof = prove(find_case(id), again);
    EXPECT_EQ(proof.outcome, Outcome::Proven) << proof.why;
    EXPECT_FALSE(proof.counted);
  }
  ProofOptions partitioned = options_for(find_case("exact-tied"), "1f1b", 2);
  partitioned.remat.mode = "min-cut";
  const Proof proof = prove(find_case("exact-tied"), partitioned);
  EXPECT_EQ(proof.outcome, Outcome::Proven) << proof.why;
}

TEST(Prove, ACaseThatReadsTheNormIsNotTaken) {
  EXPECT_NE(why_not_provable(find_case("clip")), "");
  EXPECT_THROW(prove_case(find_case("clip"), "gpipe", 2), InputError);
}

/// Micro-batches 0 and 1 change places on their way to the last stage: the messages themselves, under each other's tag.
class Exchanged : public transport::ForwardingTransport {
 public:
  Exchanged(transport::Transport& inner, int microbatches)
      : transport::ForwardingTransport(inner), microbatches_(microbatches) {}
  transport::Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    const bool value = tag >= 0 && tag < 2 * microbatches_ && tag / microbatches_ % 2 == 0;
    const int64_t microbatch = tag % microbatches_;
    return inner_.isend(data, bytes, peer, value && microbatch < 2 ? tag + (microbatch == 0 ? 1 : -1) : tag);
  }

 private:
  int64_t microbatches_;
};

TEST(Prove, AnExchangeOfMicrobatchesIsNamed) {
  const Proof proof = prove_case(find_case("exact-mlp-sum"), "gpipe", 2, [](const FaultSite& site) {
    Fault fault;
    fault.transport = [m = site.microbatches()](transport::Transport& inner) -> std::unique_ptr<transport::Transport> {
      return std::make_unique<Exchanged>(inner, m);
    };
    return fault;
  });
  EXPECT_EQ(proof.outcome, Outcome::Refuted);
  // The gradients of stage 1 sum over both micro-batches, so the exchange only changes the order of their addends.
  EXPECT_EQ(
      proof.why,
      "output 0 of micro-batch 0 of step 0: stage 0, micro-batch 1 (F): expected elements 0 to 15 of 64 of input 0 "
      "of step 0, found elements 16 to 31 of 64 of input 0 of step 0, as operand 1 of aten::addmm; as sums, of the "
      "results that differ: 8 are the expected sum in another order, 14 are other sums");
}

/// Adds each micro-batch's gradient, adds it again and takes it away: the same numbers.
Fault added_and_taken_away(const FaultSite& site) {
  return conformance::stage_fault(site, [](int, const split::StageState&) {
    return conformance::StageHooks{
        .accumulate = [](int, const std::string&, const at::Tensor& before, const at::Tensor& part) {
          const at::Tensor sum = reference::sum_of(before, part);
          return part.defined() ? at::sub(at::add(sum, part), part) : sum;
        }};
  });
}

TEST(Prove, ASumThatCancelsInNumbersIsRefuted) {
  conformance::FaultRunner numbers(kSeed);
  const conformance::FaultOutcome judged =
      numbers.run({"exact-mlp-sum", "gpipe", 2}, &added_and_taken_away, std::chrono::seconds(60));
  EXPECT_EQ(judged.status, conformance::Status::Pass) << judged.reason;
  const Proof proof = prove_case(find_case("exact-mlp-sum"), "gpipe", 2, &added_and_taken_away);
  EXPECT_EQ(proof.outcome, Outcome::Refuted);
  EXPECT_NE(proof.why.find("found aten::sub.Tensor"), std::string::npos) << proof.why;
}

Fault updated_twice(const FaultSite&) {
  return conformance::step_fault({.update = [](reference::CaseSubject& inner, reference::CaseOptimizer& optimizer) {
    inner.update(optimizer);
    inner.update(optimizer);
  }});
}

TEST(Prove, AFaultInTheUpdateIsRefuted) {
  reference::Case c = find_case("train-mlp");
  c.optimizer = {};
  c.optimizer.learning_rate = 0.5;
  c.steps = {StepKind::Train, StepKind::Optimizer};
  const Proof plain = prove_case(c, "1f1b", 2);
  EXPECT_EQ(plain.outcome, Outcome::Proven) << plain.why;
  const Proof twice = prove_case(c, "1f1b", 2, &updated_twice);
  EXPECT_EQ(twice.outcome, Outcome::Refuted);
  EXPECT_NE(twice.why.find("param "), std::string::npos) << twice.why;
}

/// The last rank's copy of the embedding, which the first rank has as well, ends without a gradient.
Fault copy_without_gradient(const FaultSite& site) {
  return conformance::step_fault({.train = [site](reference::CaseSubject& inner, int step, const models::Batch& batch) {
    inner.train(step, batch);
    if (!site.is_last_rank()) return;
    for (const auto& [name, parameter] : inner.parameters())
      if (name == "tok.weight") parameter.mutable_grad() = at::Tensor();
  }});
}

TEST(Prove, EachCopyOfAParameterNeedsItsGradient) {
  EXPECT_EQ(prove_case(find_case("exact-tied"), "gpipe", 2).outcome, Outcome::Proven);
  const Proof proof = prove_case(find_case("exact-tied"), "gpipe", 2, &copy_without_gradient);
  EXPECT_EQ(proof.outcome, Outcome::Refuted);
  EXPECT_NE(proof.why.find("rank 1 has a copy of the parameter without it"), std::string::npos) << proof.why;
}

TEST(Prove, AStaleWeightIsRefutedAtALearningRateOfZero) {
  reference::Case c = find_case("train-mlp");
  c.optimizer = {};
  c.optimizer.learning_rate = 0;
  c.steps = {StepKind::Train,     StepKind::Optimizer, StepKind::ZeroGrad, StepKind::Train,
             StepKind::Optimizer, StepKind::ZeroGrad,  StepKind::Train};
  const Proof plain = prove_case(c, "1f1b", 2);
  EXPECT_EQ(plain.outcome, Outcome::Proven) << plain.why;
  const Proof stale = prove_case(c, "1f1b", 2, conformance::find_mutant("stale-parameters").make);
  EXPECT_EQ(stale.outcome, Outcome::Refuted);
  EXPECT_NE(stale.why.find("left out of a sum"), std::string::npos) << stale.why;
}

/// Runs every forward of the first stage a second time and drops the result.
class TwiceForward : public engine::ForwardingRunner {
 public:
  using ForwardingRunner::ForwardingRunner;
  void forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) override {
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> dropped;
    inner_->forward(microbatch, inputs, dropped);
    const c10::AutoGradMode grad(true);
    inner_->forward(microbatch, inputs, outputs);
  }
};

TEST(Prove, AnOperatorThatIsExecutedTwiceIsRefuted) {
  const Proof proof = prove_case(find_case("exact-mlp-sum"), "gpipe", 2, [](const FaultSite&) {
    Fault fault;
    fault.stage = [](int stage, const split::StageState&,
                     std::unique_ptr<engine::StageRunner> inner) -> std::unique_ptr<engine::StageRunner> {
      if (stage > 0) return inner;
      return std::make_unique<TwiceForward>(std::move(inner));
    };
    return fault;
  });
  EXPECT_EQ(proof.outcome, Outcome::Refuted);
  EXPECT_TRUE(proof.differ.empty());
  EXPECT_TRUE(proof.counted);
  EXPECT_NE(proof.why.find("is executed 2 times for the same operands, 1 in the unsplit run"), std::string::npos)
      << proof.why;
}

TEST(Prove, AnotherOrderOfASumIsNamed) {
  const Proof proof =
      prove_case(find_case("exact-mlp-sum"), "gpipe", 2, conformance::find_mutant("added-in-reverse").make);
  EXPECT_EQ(proof.outcome, Outcome::Refuted);
  EXPECT_NE(proof.why.find("the same 4 addends are added in another order"), std::string::npos) << proof.why;
}

/// A mutant that is refuted as a computation, and what it is as sums.
struct AsSums {
  const char *mutant, *sentence;
  Outcome outcome;
};

class ProveSums : public ::testing::TestWithParam<AsSums> {};

TEST_P(ProveSums, TheRelationIsTold) {
  const auto& [mutant, sentence, outcome] = GetParam();
  const Make fault = conformance::find_mutant(mutant).make;
  const Proof computation = prove_case(find_case("exact-mlp-mean"), "gpipe", 2, fault);
  EXPECT_EQ(computation.outcome, Outcome::Refuted);
  EXPECT_NE(computation.why.find(std::string("of the results that differ: ") + sentence), std::string::npos)
      << computation.why;
  EXPECT_EQ(prove_case(find_case("exact-mlp-mean"), "gpipe", 2, fault, Claim::SameSum).outcome, outcome);
}

INSTANTIATE_TEST_SUITE_P(
    Mutants, ProveSums,
    ::testing::Values(
        AsSums{"added-in-reverse", "all 16 are the expected sum in another order", Outcome::Proven},
        AsSums{"scale-stage-gradient", "all 8 are 1001/1000 of the expected sum (stage 0)", Outcome::Refuted},
        AsSums{"divided-in-each-stage", "all 12 are 1/4 of the expected sum (stages 0, 1)", Outcome::Refuted},
        AsSums{"loss-doubled", "all 24 are 2 times the expected sum (stages 0, 1)", Outcome::Refuted},
        AsSums{"drop-last-microbatch", "all 16 are other sums", Outcome::Refuted}),
    [](const auto& info) {
      return testing::ParameterName()(::testing::TestParamInfo<const char*>(info.param.mutant, info.index));
    });

TEST(Prove, ASumThatCancelsIsTheSameSum) {
  const Proof proof = prove_case(find_case("exact-mlp-sum"), "gpipe", 2, &added_and_taken_away, Claim::SameSum);
  EXPECT_EQ(proof.outcome, Outcome::Proven) << proof.why;
  EXPECT_FALSE(proof.differ.empty());
}

TEST(Prove, AStageThatAddsItsOwnReadersFirstAddsTheSameSum) {
  const reference::Case& c = find_case("exact-read-by-all");
  EXPECT_EQ(prove_case(c, "1f1b", 4).outcome, Outcome::Refuted);
  const Proof proof = prove_case(c, "1f1b", 4, {}, Claim::SameSum);
  EXPECT_EQ(proof.outcome, Outcome::Proven) << proof.why;
}

}  // namespace
}  // namespace plumbline::proof
