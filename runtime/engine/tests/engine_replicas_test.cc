// Schedules with several replicas of the model, each with its own micro-batches: compared bitwise with plain autograd
// that sums per replica in the order of the schedule, then over the replicas.
#include <algorithm>
#include <mutex>
#include <random>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/schedule/orders/data_parallel.h"
#include "runtime/testing/in_full.h"
#include "runtime/testing/parameter_name.h"
#include "runtime/testing/refusal.h"

namespace plumbline::testing {
namespace {

/// A random order of actions that can run; the backwards of `in_halves` micro-batches are in halves.
schedule::Schedule in_some_order(std::vector<int> rank_of_stage, std::vector<int> replica_of_microbatch, unsigned seed,
                                 bool in_halves) {
  const int replicas = 1 + *std::max_element(replica_of_microbatch.begin(), replica_of_microbatch.end());
  schedule::Schedule schedule{"replicas, seed " + std::to_string(seed),
                              static_cast<int>(rank_of_stage.size()) / replicas,
                              static_cast<int>(replica_of_microbatch.size()),
                              rank_of_stage,
                              {},
                              replica_of_microbatch};
  schedule.ranks.resize(1 + *std::max_element(rank_of_stage.begin(), rank_of_stage.end()));
  std::vector<schedule::Action> waiting;
  std::vector<schedule::Action> done;
  const auto is_done = [&](int stage, schedule::ActionType type, int m) {
    return std::find(done.begin(), done.end(), schedule::Action{stage, type, m}) != done.end();
  };
  std::mt19937 random(seed);
  for (int m = 0; m < schedule.microbatches; ++m)
    for (int stage = 0; stage < schedule.stages; ++stage) {
      waiting.push_back({stage, schedule::ActionType::F, m});
      const bool halves = in_halves && random() % 2 == 0;
      waiting.push_back({stage, halves ? schedule::ActionType::I : schedule::ActionType::B, m});
      if (halves) waiting.push_back({stage, schedule::ActionType::W, m});
    }
  const auto is_ready = [&](const schedule::Action& action) {
    const auto [stage, type, m, overlaps] = action;
    if (type == schedule::ActionType::F) return stage == 0 || is_done(stage - 1, schedule::ActionType::F, m);
    if (type == schedule::ActionType::W) return is_done(stage, schedule::ActionType::I, m);
    return is_done(stage, schedule::ActionType::F, m) &&
           (stage + 1 == schedule.stages || is_done(stage + 1, schedule::ActionType::B, m) ||
            is_done(stage + 1, schedule::ActionType::I, m));
  };
  while (!waiting.empty()) {
    std::shuffle(waiting.begin(), waiting.end(), random);
    const auto next = std::find_if(waiting.begin(), waiting.end(), is_ready);
    done.push_back(*next);
    schedule.ranks[schedule.rank_of(next->stage, next->microbatch)].push_back(*next);
    waiting.erase(next);
  }
  return schedule;
}

/// Rank r holds stage r of replica 0 and stage P - 1 - r of replica 1; each pipeline fills, then drains.
schedule::Schedule two_directions(int ranks, int microbatches) {
  schedule::Schedule schedule{"two directions", ranks, microbatches, {}, {}, {}};
  for (int r = 0; r < ranks; ++r) schedule.rank_of_stage.push_back(r);
  for (int r = 0; r < ranks; ++r) schedule.rank_of_stage.push_back(ranks - 1 - r);
  for (int m = 0; m < microbatches; ++m) schedule.replica_of_microbatch.push_back(m < microbatches / 2 ? 0 : 1);
  for (int r = 0; r < ranks; ++r) {
    std::vector<schedule::Action>& actions = schedule.ranks.emplace_back();
    for (const schedule::ActionType type : {schedule::ActionType::F, schedule::ActionType::B})
      for (int m = 0; m < microbatches; ++m)
        actions.push_back({schedule.replica_of_microbatch[m] == 0 ? r : ranks - 1 - r, type, m});
  }
  return schedule;
}

class EveryKindTwice : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryKindTwice, TwoPipelinesInOppositeDirections) {
  for (int ranks : in_full() ? std::vector{1, 2, 3, 4} : std::vector{1, 4})
    for (int microbatches : in_full() ? std::vector{2, 4, 5} : std::vector{5}) {
      expect_like_oracle(GetParam(), two_directions(ranks, microbatches), 2 * microbatches + 1, /*steps=*/2);
      if (HasFatalFailure()) return;
    }
}

TEST_P(EveryKindTwice, AnyOrderOnAnyRanks) {
  const unsigned seeds = in_full_or_sample(6, 2);
  for (unsigned seed = 0; seed < seeds; ++seed)
    for (const std::vector<int>& ranks : {std::vector{0, 1, 2, 3, 3, 2, 1, 0},
                                          {0, 0, 1, 1, 1, 1, 0, 0},
                                          {0, 1, 2, 2, 1, 0},
                                          {0, 1, 1, 0, 2, 3, 3, 2},
                                          {0, 1, 1, 2, 2, 0}}) {
      std::vector<int> replica_of = {1, 0, 0, 1, 0};
      if (ranks.size() == 6 && ranks[2] == 1) replica_of = {2, 0, 1, 1, 2, 0};  // three replicas of two stages
      std::shuffle(replica_of.begin(), replica_of.end(), std::mt19937(seed));
      expect_like_oracle(GetParam(), in_some_order(ranks, replica_of, seed, /*in_halves=*/seed % 2 == 0), 11);
      if (HasFatalFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(EngineReplicas, EveryKindTwice,
                         ::testing::Values("mlp", "skip", "tied", "dropout", "two outputs", "integers", "frozen",
                                           "unused"),
                         testing::ParameterName());

/// Replicas of whole pipelines, with every way to share parameters and gradients.
TEST_P(EveryKindTwice, DataParallelPipelines) {
  const bool tied = std::string(GetParam()) == "tied";
  size_t number = std::string(GetParam()).size() % 2;  // some models take one half of the sample, the others the other
  for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe-v", "dualpipe"})
    for (const schedule::ReplicaOptions replicas :
         {schedule::ReplicaOptions{}, {.reduce_early = true, .shard = false}, {.reduce_early = true, .shard = true}}) {
      const schedule::Schedule one = schedule::make_schedule(name, 2, 4);
      if (!in_sample(number++, 2) || (tied && one.stages != 2 && one.stages != 4)) continue;
      expect_like_oracle(GetParam(), data_parallel(one, 2), 19, /*steps=*/2,
                         [&](engine::EngineOptions& options) { options.replicas = replicas; });
      if (HasFatalFailure()) return;
    }
}

TEST(EngineReplicas, ParametersOfOtherRanksAreNotUsedUngathered) {
  const at::Tensor x = batch_of("mlp", 8), target = target_of("mlp", 8);
  Fleet fleet("mlp", schedule::data_parallel(schedule::make_schedule("1f1b", 1, 2), 2));
  fleet.options.replicas.shard = true;
  fleet.options.custom.of_type[schedule::ActionType::UNSHARD] = [](auto, engine::ActionContext&) {};
  std::string text;
  try {
    fleet.train(x, target);
  } catch (const Error& error) {
    text = error.what();
  }
  expect_part(text, "position 1 (0F");
  expect_part(text, "the parameters of stage 0 are sharded");
}

TEST(EngineReplicas, ParametersAreWholeBetweenSteps) {
  const at::Tensor x = batch_of("mlp", 8), target = target_of("mlp", 8);
  Fleet fleet("mlp", schedule::data_parallel(schedule::make_schedule("looped-bfs", 1, 2), 2));
  fleet.options.replicas.shard = true;
  int seen = 0;
  std::mutex mutex;
  fleet.options.custom.of_type[schedule::ActionType::RESHARD] = [&](auto actions, engine::ActionContext& context) {
    context.execute(actions[0]);
    const std::lock_guard lock(mutex);
    ++seen;
  };
  fleet.run([&](engine::Engine& engine, int) {
    engine.train({x}, target);
    for (const auto& [stage, state] : engine.states())
      for (const auto& [name, tensor] : state.parameters)
        EXPECT_FALSE(at::isnan(tensor).any().item<bool>()) << name << " of stage " << stage;
  });
  EXPECT_GE(seen, 2 * 3) << "gathered again for the backward";
}

TEST(EngineReplicas, AParameterThatIsSentOutlivesItsReshard) {
  const at::Tensor x = batch_of("tied", 8), target = target_of("tied", 8);
  for (const schedule::Schedule& one : {placed({0, 0}, 1, 2), schedule::make_schedule("1f1b", 2, 2)})
    for (const bool keep_strides : {false, true}) {
      SCOPED_TRACE(one.name + (keep_strides ? ", strides kept" : ""));
      Told evaluated[2], trained[2];  // without and with shards
      for (const bool shard : {false, true}) {
        Fleet fleet("tied", schedule::data_parallel(one, 2));
        fleet.split.multi_use = split::MultiUse::Transmit;
        fleet.options.keep_strides = keep_strides;
        fleet.options.replicas.shard = shard;
        fleet.run([&](engine::Engine& engine, int) {
          fleet.tell(evaluated[shard], engine, engine.evaluate({x}, target));
          fleet.tell(trained[shard], engine, engine.train({x}, target));
        });
      }
      Oracle oracle("tied", 2, 4);
      expect_same(evaluated[1].outputs, oracle.evaluate(x, target).outputs, "output of the evaluation");
      const Told plain = oracle.train(x, target);
      expect_same(trained[1].outputs, plain.outputs, "output");
      expect_same(trained[1].losses, plain.losses, "loss of micro-batch");
      expect_same(trained[1].gradients, trained[0].gradients, "gradient");
      for (const auto& [name, gradient] : plain.gradients)
        EXPECT_TRUE(at::allclose(trained[1].gradients.at(name), gradient, 1e-4, 1e-6)) << name;
    }
}

TEST(EngineReplicas, LostParametersEndAnEngine) {
  const at::Tensor x = batch_of("mlp", 8), target = target_of("mlp", 8);
  Fleet fleet("mlp", schedule::data_parallel(schedule::make_schedule("gpipe", 1, 2), 2));
  fleet.options.replicas.shard = true;
  bool fails = true;
  fleet.options.custom.of_type[schedule::ActionType::B] = [&](auto actions, engine::ActionContext& context) {
    if (fails) throw std::runtime_error("once");
    context.execute(actions[0]);
  };
  fleet.run([&](engine::Engine& engine, int) {
    EXPECT_THROW(engine.train({x}, target), Error);
    expect_part(refusal([&] { engine.train({x}, target); }), "make a new engine from a saved state");
  });
}

TEST(EngineReplicas, SumsPerReplicaFirst) {
  const schedule::Schedule schedule = two_directions(2, 6);
  const at::Tensor x = batch_of("mlp", 12), target = target_of("mlp", 12);
  Oracle one_by_one("mlp", 2, 6);
  const Told flat = one_by_one.train(x, target), ours = Fleet("mlp", schedule).train(x, target);
  ASSERT_FALSE(at::equal(flat.gradients.at("l0.weight"), ours.gradients.at("l0.weight")))
      << "the order makes no difference to these numbers";
}

TEST(EngineReplicas, PlacementsGiveTheSameBytes) {
  const at::Tensor x = batch_of("strided", 8), target = target_of("strided", 8);
  const std::vector<int> replica_of = {0, 1, 0, 1};
  std::optional<Told> first;
  for (const std::vector<int>& ranks : {std::vector{0, 1, 2, 3, 3, 2, 1, 0},
                                        {0, 0, 1, 1, 1, 1, 0, 0},
                                        {0, 0, 0, 0, 1, 1, 1, 1},
                                        {1, 0, 1, 0, 0, 1, 0, 1}}) {
    // One micro-batch after another: every stage sums its replicas' gradients in ascending order.
    schedule::Schedule schedule{
        "one by one",
        4,
        4,
        ranks,
        std::vector<std::vector<schedule::Action>>(*std::max_element(ranks.begin(), ranks.end()) + 1),
        replica_of};
    for (int m = 0; m < 4; ++m)
      for (int k = 0; k < 8; ++k) {
        const schedule::Action action{k < 4 ? k : 7 - k, k < 4 ? schedule::ActionType::F : schedule::ActionType::B, m};
        schedule.ranks[schedule.rank_of(action.stage, m)].push_back(action);
      }
    const Told told = Fleet("strided", schedule).train(x, target);
    if (first) expect_same(told, *first);
    first = told;
  }
}

TEST(EngineReplicas, OutputsAreWhereTheirReplicaEnds) {
  const at::Tensor x = batch_of("mlp", 8), target = target_of("mlp", 8);
  Fleet fleet("mlp", two_directions(4, 4));
  fleet.run([&](engine::Engine& engine, int rank) {
    const engine::StepResult result = engine.evaluate({x}, target);
    const bool ends_here = rank == 0 || rank == 3;
    ASSERT_EQ(result.outputs.size(), ends_here ? 4u : 0u);
    ASSERT_EQ(result.losses.size(), ends_here ? 4u : 0u);
    for (int m = 0; m < 4 && ends_here; ++m) {
      const bool mine = (m < 2) == (rank == 3);  // replica 0 ends on rank 3
      EXPECT_EQ(result.outputs[m].size(), mine ? 1u : 0u);
      EXPECT_EQ(result.losses[m].defined(), mine);
    }
    if (!ends_here) return;
    expect_part(refusal([&] { engine.merged_outputs(result); }), rank == 0
                                                                     ? "micro-batch 0 are on rank 3, not on rank 0"
                                                                     : "micro-batch 2 are on rank 0, not on rank 3");
  });
}

TEST(EngineReplicas, ForwardThatWritesBuffersIsRefusedInTrainingOnly) {
  const at::Tensor x = batch_of("batch norm", 8), target = target_of("batch norm", 8);
  Oracle oracle("batch norm", 2, 4);
  Fleet fleet("batch norm", two_directions(2, 4));
  Told ours;
  fleet.run([&](engine::Engine& engine, int) { fleet.tell(ours, engine, engine.evaluate({x}, target)); });
  expect_same(ours.outputs, oracle.evaluate(x, target).outputs, "output");
  const std::string text = refusal([&] { fleet.train(x, target); });
  expect_part(text, "the forward of stage ");
  expect_part(text, " writes 'n0.");
  expect_part(text, "2 replicas, of which each would see its own micro-batches only");
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

}  // namespace
}  // namespace plumbline::testing
