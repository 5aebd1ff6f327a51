// Schedules from text, lowered or not, and random ones, on any placement of the stages: compared bitwise with plain
// autograd that sums in their order. Cases have the names of PyTorch's test_schedule and schedule_registry.
#include <algorithm>
#include <random>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/testing/random_schedule.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/in_full.h"
#include "runtime/testing/refusal.h"

namespace plumbline::testing {
namespace {

const std::vector<std::string> kKinds = {"mlp", "skip", "tied", "dropout", "two outputs", "integers", "frozen early"};

schedule::Schedule from_text(const std::string& name, const std::string& rows) {
  return schedule::parse_csv(rows, name);
}

TEST(EngineSchedules, VPlacementOnOneTwoAndFourRanks) {
  const std::vector<schedule::Schedule> schedules = {
      from_text("grad_with_v_schedule", "0F0,0F1,1F0,1F1,1B0,1B1,0B0,0B1\n"),
      from_text("grad_with_split_b_w", "0F0,0F1,0I0,0I1,0W0,0W1\n"),
      from_text("v on one rank, halves", "0F0,1F0,0F1,1F1,1I0,0I0,1I1,1W0,0I1,0W1,1W1,0W0\n"),
      from_text("v on 2 ranks",
                "0F0,0F1,3F0,3B0,3F1,3B1,0B0,0B1\n"
                "1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1\n"),
      from_text("v on 2 ranks, halves",
                "0F0,0F1,3F0,3I0,3F1,3I1,3W0,3W1,0I0,0W0,0B1\n"
                "1F0,2F0,1F1,2F1,2I0,1I0,2I1,1I1,1W1,2W0,1W0,2W1\n"),
      from_text("v on 4 ranks",
                "0F0,0F1,7F0,7B0,7F1,7B1,0B0,0B1\n"
                "1F0,1F1,6F0,6F1,6B0,6B1,1B0,1B1\n"
                "2F0,2F1,5F0,5F1,5B0,5B1,2B0,2B1\n"
                "3F0,4F0,3F1,4F1,4B0,3B0,4B1,3B1\n")};
  for (const schedule::Schedule& schedule : schedules)
    for (const std::string& kind : kKinds) {
      expect_like_oracle(kind, schedule, 5, /*steps=*/2);
      if (HasFatalFailure()) return;
    }
}

TEST(EngineSchedules, NonSymmetricStageIds) {
  const std::vector<schedule::Schedule> schedules = {from_text("ScheduleVShaped",
                                                               "0F0,3F0,3B0,0B0\n"
                                                               "1F0,2F0,2B0,1B0\n"),
                                                     from_text("ScheduleUnbalanced",
                                                               "0F0,1F0,0F1,1F1,4F0,4B0,4F1,4B1,1B0,0B0,1B1,0B1\n"
                                                               "2F0,3F0,2F1,3F1,3B0,2B0,3B1,2B1\n")};
  for (const schedule::Schedule& schedule : schedules)
    for (const std::string& kind : kKinds) {
      expect_like_oracle(kind, schedule, 4, /*steps=*/2);
      if (HasFatalFailure()) return;
    }
}

TEST(EngineSchedules, WithWAccumulatesOverFourSteps) {
  const schedule::Schedule schedule = from_text("ScheduleWithW",
                                                "0F0,0F1,2F0,2F1,2I0,2W0,0I0,2I1,2W1,0W0,0B1\n"
                                                "1F0,1F1,3F0,3I0,3F1,3I1,1I0,3W0,1I1,3W1,1W0,1W1\n");
  for (const std::string& kind : kKinds) {
    expect_like_oracle(kind, schedule, 7, /*steps=*/4);
    if (HasFatalFailure()) return;
  }
}

TEST(EngineSchedules, ReorderedBSendsAfterSeveralBackwards) {
  // Already lowered; sends of forwards and backwards are batched.
  const schedule::Schedule schedule =
      from_text("ScheduleReorderedB",
                "0F0,0F1,0SEND_F0,0SEND_F1,0F2,0SEND_F2,0RECV_B1,0RECV_B0,0RECV_B2,0B0,0B1,0B2\n"
                "1RECV_F1,1RECV_F0,1F0,1F1,1B1,1RECV_F2,1B0,1F2,1SEND_B0,1SEND_B1,1B2,1SEND_B2\n");
  for (const std::string& kind : kKinds) {
    expect_like_oracle(kind, schedule, 7, /*steps=*/2);
    if (HasFatalFailure()) return;
  }
}

TEST(EngineSchedules, LoweredIsNotMended) {
  const std::string rows = "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n";
  const auto trains = [](const std::string& text) {
    Fleet("mlp", from_text("lowered", text)).train(batch_of("mlp", 2), target_of("mlp", 2));
  };
  trains(rows);
  for (const std::string missing : {"0SEND_F0,", "0RECV_B0,", "1RECV_F0,", ",1SEND_B0"}) {
    std::string text = rows;
    text.erase(text.find(missing), missing.size());
    const std::string reason = refusal([&] { trains(text); });
    expect_part(reason, "schedule lowered: ");
    expect_part(reason, "is missing");
  }
}

TEST(EngineSchedules, AnySchedulesGradientsAreThoseOfItsOrder) {
  int tried = 0;
  for (unsigned seed = 0; tried < in_full_or_sample(60, 20); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const RandomPipe pipe = random_pipe(random);
    if (pipe.forward_only) continue;
    ++tried;
    SCOPED_TRACE(show(pipe.compute, pipe.edges));
    const std::string& kind = kKinds[random() % kKinds.size()];
    expect_like_oracle(kind, pipe.compute, pipe.compute.microbatches + 2, /*steps=*/2);
    if (HasFatalFailure()) return;
  }
}

/// A random schedule for the chain of stages, with groups and replicas.
RandomPipe random_chain(std::mt19937& random) {
  RandomPipe pipe = random_pipe(random, {.groups = true, .replicas = true});
  pipe.edges = schedule::chain_edges(pipe.compute.stages);
  return pipe;
}

TEST(EngineSchedules, GroupsAndReplicasAtRandom) {
  int tried = 0;
  for (unsigned seed = 1000; tried < in_full_or_sample(60, 20); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const RandomPipe pipe = random_chain(random);
    if (pipe.forward_only) continue;
    ++tried;
    SCOPED_TRACE(show(pipe.compute, pipe.edges));
    expect_like_oracle(kKinds[random() % kKinds.size()], pipe.compute, pipe.compute.microbatches + 2, /*steps=*/2);
    if (HasFatalFailure()) return;
  }
}

TEST(EngineSchedules, LoweredAtRandom) {
  // The lists have receives in any order, waits for sends, and actions of whole stages.
  const std::vector<std::string> chains = {"mlp", "tied", "dropout", "frozen early", "unused"};
  int tried = 0;
  for (unsigned seed = 2000; tried < in_full_or_sample(60, 20); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const RandomPipe pipe = random_chain(random);
    if (pipe.forward_only) continue;
    ++tried;
    const schedule::Schedule lowered = random_lowered(pipe, random, {.groups = true, .replicas = true});
    SCOPED_TRACE(show(lowered, pipe.edges));
    const std::string& kind = chains[random() % chains.size()];
    expect_like_oracle(kind, lowered, lowered.microbatches + 2, /*steps=*/2);
    if (HasFatalFailure()) return;
    // Also runs an evaluation of it.
    const at::Tensor x = batch_of(kind, 7), target = target_of(kind, 7);
    Oracle oracle(kind, lowered.stages, lowered.microbatches);
    Fleet fleet(kind, lowered);
    Told ours;
    fleet.run([&](engine::Engine& engine, int) { fleet.tell(ours, engine, engine.evaluate({x}, target)); });
    expect_same(ours.outputs, oracle.evaluate(x, target).outputs, "output");
    if (HasFatalFailure()) return;
  }
}

TEST(EngineSchedules, EveryKnownOneEqualsAutograd) {
  for (const std::string& name : schedule::schedule_names())
    for (int ranks : {2, 4}) {
      const schedule::Schedule schedule = schedule::make_schedule(name, ranks, 2 * ranks + 2);
      if (name == "forward-only") continue;
      for (const std::string kind : {"skip", "tied"}) {
        expect_like_oracle(kind, schedule, schedule.microbatches + 3);
        if (HasFatalFailure()) return;
      }
    }
}

TEST(EngineSchedules, LoweredBeforehandMakesNoDifference) {
  const schedule::Schedule compute = schedule::make_schedule("1f1b", 4, 5);
  const at::Tensor x = batch_of("mlp", 7), target = target_of("mlp", 7);
  const schedule::Schedule lowered = schedule::lower(compute, schedule::chain_edges(4));
  expect_same(Fleet("mlp", lowered).train(x, target), Fleet("mlp", compute).train(x, target));
  // With a stage on each rank, the transfers of the chain also carry the values that skip stages.
  expect_like_oracle("skip", lowered, 7);
}

TEST(EngineSchedules, EvaluationTakesWhatALoweredScheduleHasForIt) {
  const schedule::Schedule schedule = from_text("lowered",
                                                "0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0RECV_B1,0B0,0B1\n"
                                                "1RECV_F1,1RECV_F0,1F1,1F0,1B0,1B1,1SEND_B0,1SEND_B1\n");
  const at::Tensor x = batch_of("batch norm", 6), target = target_of("batch norm", 6);
  Oracle oracle("batch norm", 2, 2);
  const Told evaluated = oracle.evaluate(x, target);
  Fleet fleet("batch norm", schedule);
  Told ours;
  fleet.run([&](engine::Engine& engine, int) { fleet.tell(ours, engine, engine.evaluate({x}, target)); });
  expect_same(ours.outputs, evaluated.outputs, "output");
  expect_same(ours.losses, evaluated.losses, "loss");
  expect_same(ours.buffers, evaluated.buffers, "buffer");
}

TEST(EngineSchedules, ForwardOnlyEvaluationsInAChain) {
  // The output of one feeds the next, twenty times.
  for (bool no_backward : {false, true})
    for (int ranks : {1, 2, 4}) {
      schedule::Schedule schedule = schedule::make_schedule("1f1b", ranks, 4);
      for (auto& actions : schedule.ranks)
        if (no_backward)
          std::erase_if(actions, [](const schedule::Action& action) { return action.type != schedule::ActionType::F; });
      SCOPED_TRACE(std::to_string(ranks) + " ranks, backwards " + (no_backward ? "are not there" : "are left out"));
      const at::Tensor target = target_of("mlp", 8);
      Oracle oracle("mlp", ranks, 4);
      std::vector<at::Tensor> theirs = {batch_of("mlp", 8)};
      for (int i = 0; i < 20; ++i) theirs.push_back(oracle.evaluate(theirs[i], target).outputs[0]);
      Fleet fleet("mlp", schedule);
      fleet.run([&](engine::Engine& engine, int rank) {
        for (int i = 0; i < 20; ++i) {
          const engine::StepResult result = engine.evaluate({theirs[i]}, target);
          const Tensors merged = engine.merged_outputs(result);
          ASSERT_EQ(merged.size(), rank + 1 == ranks ? 1u : 0u);
          if (!merged.empty()) expect_same(merged[0], theirs[i + 1], "output " + std::to_string(i));
        }
      });
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace plumbline::testing
