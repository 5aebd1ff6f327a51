// `plumbline prove` from the command line.
#include "conformance/cli/testing/cli_fixture.h"

namespace plumbline::cli {
namespace {

class ProveCli : public Cli {};

TEST_F(ProveCli, AStepIsThatOfTheWholeBatchOrTheAnswerSaysWhy) {
  const conformance::ProcessResult same = start({"prove", "--claim", "step", "--case", "exact-mlp-mean,uneven-mean"});
  EXPECT_EQ(exit_code(same), 0) << same.output;
  EXPECT_TRUE(has(same, "PROVEN uneven-mean: ")) << same.output;
  EXPECT_TRUE(has(same, "weights of loss: needed 3/10 x 2, 1/5 x 2; used 3/10 x 2, 1/5 x 2")) << same.output;
  const conformance::ProcessResult weights = start({"prove", "--claim", "step", "--case", "mean-of-means-uneven"});
  EXPECT_EQ(exit_code(weights), 1) << weights.output;
  EXPECT_TRUE(has(weights, "needed 3/10 x 2, 1/5 x 2; used 1/4 x 4")) << weights.output;
  const conformance::ProcessResult statistics = start({"prove", "--claim", "step", "--case", "resnet-bn"});
  EXPECT_EQ(exit_code(statistics), 1) << statistics.output;
  EXPECT_TRUE(has(statistics, "NO resnet-bn: aten::native_batch_norm of blocks.0.bn1: mixes rows"))
      << statistics.output;
}

TEST_F(ProveCli, AStepHasNoScheduleAndTheClaimIsKnown) {
  expect_refused({
      {{"prove", "--claim", "step", "--case", "mlp", "--schedule", "gpipe"}, "--claim step goes without --schedule"},
      {{"prove", "--claim", "step", "--case", "mlp", "--ranks", "2"}, "--claim step goes without --ranks"},
      {{"prove", "--claim", "step", "--case", "exact-eval-only"}, "it has no train step"},
      {{"prove", "--claim", "steps", "--case", "mlp"}, "--claim: steps not in {computation,sum,step}"},
  });
}

TEST_F(ProveCli, AProgramIsProvenAsItIsRun) {
  const std::string twice = std::string(PLUMBLINE_PT2_TESTDATA) + "/twice/model.pt2";
  const conformance::ProcessResult proven =
      start({"prove", "--program", twice, "--split", "between", "--schedule", "gpipe", "--microbatches", "6"});
  EXPECT_EQ(exit_code(proven), 0) << proven.output;
  EXPECT_TRUE(has(proven, "PROVEN " + twice + " x gpipe (2 stages, 2 ranks, 6 micro-batches): ")) << proven.output;
  expect_refused({
      {{"prove"}, "--case GLOB or --program M.pt2 is missing"},
      {{"prove", "--case", "mlp", "--stages", "2"}, "--stages goes with --program M.pt2, which is missing"},
      {{"prove", "--program", twice, "--case", "mlp"}, "--case is about cases; it does not go with --program"},
      {{"prove", "--program", twice, "--claim", "step"}, "a program takes computation or sum"},
      {{"prove", "--program", "absent.pt2"}, "absent.pt2"},
      {{"prove", "--program", ""}, "no such file; expected a .pt2 archive"},
  });
}

}  // namespace
}  // namespace plumbline::cli
