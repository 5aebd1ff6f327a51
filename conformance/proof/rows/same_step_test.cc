// The answers about steps of the corpus, against what is known of each model, and against numbers: where the step is
// proven to be that of the whole batch, the gradients of a run in float64 agree, and where the answer is no, they
// differ.
#include "conformance/proof/rows/same_step.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/corpus/corpus.h"
#include "conformance/proof/rows/row_type.h"
#include "runtime/error.h"

namespace plumbline::proof {
namespace {

using conformance::find_case;

/// Models of the corpus whose steps are not those of the whole batch, or not shown to be; a part of the reason.
const std::map<std::string, std::string>& reasons() {
  static const std::map<std::string, std::string> all = {
      {"resnet-bn", "aten::native_batch_norm of blocks.0.bn1: mixes rows"},
      {"mlp-dropout", "aten::bernoulli.float of layers.0: random numbers are drawn"},
      {"shared-dropout", "random numbers are drawn"},
      {"noise", "random numbers are drawn"},
      {"host-numbers", "aten::add.Scalar: its argument other differs"},
      {"exact-loss-read", "aten::relu: is not linear in operand 0, a sum over the rows"},
      // The loss is a mean over the rows, the loss added to it is not.
      {"auxiliary", "aten::add.Tensor: adds operand 1, which micro-batches weight otherwise"},
      {"branch", "output 1 of micro-batch 0 needs the weight 1 and gets 1/4"},
      {"balanced", "aten::mul.Tensor: multiplies two sums over the rows"},
      // Buffers that are read, or that would have to be proven sums.
      {"reads-buffer", "micro-batches weight otherwise"},
      {"late-buffer", "micro-batches weight otherwise"},
      {"exact-convolution", "running_sum is updated"},
      // Types are kept by element of the memory's own type, and complex numbers are views of pairs.
      {"complex", "elements that no operator wrote"},
      {"exact-complex", "elements that no operator wrote"},
      {"exact-conjugated", "elements that no operator wrote"},
      // The program takes another way for a micro-batch.
      {"exact-attention-lengths", "runs another operator here"},
      {"exact-begins-with-row", "runs another operator here"},
      {"begins-with-row", "runs another operator here"},
  };
  return all;
}

TEST(SameStep, ACaseOfEveryModel) {
  std::set<std::string> models;
  int same = 0;
  for (const reference::Case& c : conformance::corpus()) {
    if (c.steps.size() > 5 || c.divided || c.microbatches < 2 || !models.insert(c.model).second) continue;
    SCOPED_TRACE(c.id + ", model " + c.model);
    StepProof proof;
    try {
      proof = prove_same_step(c, 1);
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(), "it has no train step");
      continue;
    }
    const auto reason = reasons().find(c.model);
    if (reason == reasons().end()) {
      EXPECT_EQ(proof.answer, StepAnswer::Same) << proof.why;
      EXPECT_LE(proof.difference, 1e-12);
      EXPECT_FALSE(proof.weights.empty());
      ++same;
    } else {
      EXPECT_NE(proof.answer, StepAnswer::Same);
      EXPECT_NE(proof.why.find(reason->second), std::string::npos) << proof.why;
      if (proof.answer == StepAnswer::Differs) {
        EXPECT_GE(proof.difference, 1e-3);
      }
    }
  }
  EXPECT_GE(same, 60);
}

TEST(SameStep, TheModuleOfAnOperatorIsNamed) {
  const StepProof proof = prove_same_step(find_case("resnet-bn"), 1);
  EXPECT_EQ(proof.answer, StepAnswer::Differs);
  EXPECT_EQ(proof.op, "aten::native_batch_norm");
  EXPECT_EQ(proof.module, "blocks.0.bn1");
  EXPECT_EQ(prove_same_step(find_case("dropout"), 1).module, "layers.0");
}

TEST(SameStep, WeightsAreSharesOfRowsAndOfTargets) {
  const auto needed_of = [](const char* id) {
    std::vector<std::string> texts;
    for (const LossWeight& weight : prove_same_step(find_case(id), 1).weights)
      texts.push_back(to_string(weight.needed));
    return texts;
  };
  // 10 rows over 4 micro-batches: 3, 3, 2, 2.
  EXPECT_EQ(needed_of("uneven-mean"), (std::vector<std::string>{"3/10", "3/10", "1/5", "1/5"}));
  const StepProof equal = prove_same_step(find_case("mean-of-means-uneven"), 1);
  EXPECT_EQ(equal.answer, StepAnswer::Differs);
  EXPECT_EQ(equal.why, "loss of micro-batch 0 needs the weight 3/10 and gets 1/4");
  EXPECT_GE(equal.difference, 1e-3);
}

/// 8 rows give every micro-batch the weight that it needs, 10 do not.
TEST(SameStep, EveryTrainStepIsProven) {
  reference::Case c = find_case("mean-of-means-uneven");
  c.steps = {reference::Step(StepKind::Train, 8)};
  EXPECT_EQ(prove_same_step(c, 1).answer, StepAnswer::Same);
  c.steps.emplace_back(StepKind::Train, 10);
  EXPECT_EQ(prove_same_step(c, 1).why, "loss of micro-batch 0 needs the weight 3/10 and gets 1/4");
  c.steps.emplace_back(StepKind::Train, 8);
  EXPECT_EQ(prove_same_step(c, 1).answer, StepAnswer::Differs);
}

TEST(SameStep, NothingIsDividedByAShareOfZero) {
  Share share;
  share.parts = {Rational(1, 2), Rational(0)};
  EXPECT_EQ(value_of(Power{{kRows, -1}}, {share}, 0), Rational(2));
  EXPECT_THROW(value_of(Power{{kRows, -1}}, {share}, 1), InputError);
}

TEST(SameStep, CasesWithoutAStepOfAWholeBatchAreNotTaken) {
  for (const char* id : {"exact-one-microbatch", "exact-eval-only", "exact-divided-lengths"})
    EXPECT_THROW(prove_same_step(find_case(id), 1), InputError) << id;
}

}  // namespace
}  // namespace plumbline::proof
