#include "conformance/program/rank.h"

#include <gtest/gtest.h>

#include "conformance/backend/rank_threads.h"
#include "conformance/program/step.h"
#include "runtime/capture/pt2/testing/archives.h"
#include "runtime/testing/refusal.h"

namespace plumbline::program {
namespace {

/// The program with a weight that its first and its last layer share, cut at these modules, with copies of the weight.
ProgramStep tied_step(const std::vector<std::string>& modules, const std::string& schedule) {
  ProgramOptions options;
  options.program = capture::pt2::testdata("tied") / "model.pt2";
  options.inputs = capture::pt2::testdata("tied") / "inputs.safetensors";
  options.loss = "mse:TARGET";
  options.schedule = schedule;
  options.split.points = modules;
  options.split.shared = {"replicate"};
  return make_step(options, 0);
}

TensorMap run(const ProgramStep& step) {
  TensorMap results;
  conformance::run_thread_ranks_on("cpu", /*slow_copies=*/false, step.ranks,
                                   [&](transport::Transport& transport, c10::Device device) {
                                     const bool first = transport.rank() == 0;
                                     TensorMap mine = run_step_on_rank(transport, first ? &step : nullptr, device);
                                     if (first) results = std::move(mine);
                                   });
  return results;
}

// An engine that is not told of the copies does not sum their gradients.
TEST(ProgramRank, CopiesThatDifferAreNamed) {
  ProgramStep of_three_ranks = tied_step({"middle", "head"}, "1f1b");
  const ProgramStep of_two_stages = tied_step({"head"}, "zb-v");
  ASSERT_EQ(of_three_ranks.ranks, 3);
  ASSERT_EQ(of_two_stages.ranks, 1);
  const TensorMap summed = run(of_three_ranks);
  EXPECT_EQ(run(of_two_stages), summed);
  EXPECT_TRUE(summed.contains("grad.first.weight"));
  EXPECT_FALSE(summed.contains("grad.unused")) << "it has no gradient on any rank";
  of_three_ranks.prepared.pipe.shared.clear();
  testing::expect_part(testing::failure([&] { run(of_three_ranks); }),
                       "rank 0 and rank 2 disagree on grad.first.weight (copies of one tensor must be equal)");
}

}  // namespace
}  // namespace plumbline::program
