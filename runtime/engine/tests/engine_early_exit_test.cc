// Evaluations that micro-batches leave early, compared with the whole module run plainly on each micro-batch.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/gelu.h>

#include <functional>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/lowering/passes.h"
#include "runtime/testing/refusal.h"

namespace plumbline::testing {
namespace {

/// Four layers, a stage each, with a skip from the first to the last. In an evaluation a micro-batch of fewer than
/// three rows leaves behind the second layer, before `late`, a parameter of that stage. The second output is a loss of
/// that stage.
struct LeavesEarly : torch::nn::Module {
  LeavesEarly() : late(register_parameter("late", waves({kWidth}, 6))) {
    for (int i = 0; i < 4; ++i) layers.push_back(register_module("l" + std::to_string(i), std::make_shared<Layer>(i)));
  }
  Tensors forward(const Tensors& in) {
    const at::Tensor first = capture::call(layers[0], in[0]);
    at::Tensor h = capture::call(layers[1], at::gelu(first));
    const at::Tensor loss = h.mean();
    if (!is_training() && in[0].size(0) < 3) return {at::add(h, h), loss};
    h = capture::call(layers[2], at::gelu(h * late));
    return {capture::call(layers[3], h) + first, loss};
  }
  at::Tensor late;
  std::vector<std::shared_ptr<Layer>> layers;
};

constexpr int kExit = 1, kLast = 3;  // stages
const std::vector<schedule::StageEdge> kEdges = {{0, 1}, {1, 2}, {2, 3}, {0, 3}};

engine::PipeSource source(LeavesEarly& model, std::vector<split::SplitPoint> points) {
  return [&model, points = std::move(points)](bool training, const Tensors& inputs) {
    split::SplitOptions split;
    split.points = points;
    split.loss_outputs = std::vector<int>{0};
    split.local_losses = {1};
    split.exits_early = true;
    const capture::ForwardFunction forward = [&model](const Tensors& in) { return model.forward(in); };
    return split::make_pipe({&model, forward, {"x"}}, inputs, training, split);
  };
}

/// One micro-batch for each number of rows.
microbatch::Microbatches batch_of_rows(const std::vector<int64_t>& rows) {
  microbatch::Microbatches batch;
  for (size_t m = 0; m < rows.size(); ++m) {
    batch.inputs.push_back({waves({rows[m], kWidth}, 0.1 + m)});
    batch.targets.emplace_back(waves({rows[m], kWidth}, 2.5 + m));
  }
  return batch;
}

void expect_plain_evaluation(engine::Engine& engine, const schedule::Schedule& schedule, int rank,
                             const std::vector<int64_t>& rows) {
  const microbatch::Microbatches batch = batch_of_rows(rows);
  const engine::StepResult result = engine.evaluate(batch);
  LeavesEarly model;
  model.eval();
  const at::NoGradGuard no_grad;
  for (size_t m = 0; m < rows.size(); ++m) {
    SCOPED_TRACE("micro-batch " + std::to_string(m) + " of " + std::to_string(rows[m]) + " rows");
    const Tensors expected = model.forward(batch.inputs[m]);
    const int number = static_cast<int>(m);
    if (schedule.rank_of(rows[m] < 3 ? kExit : kLast, number) == rank) {
      expect_same(result.outputs.at(m), Tensors{expected[0], at::Tensor()}, "output");
      expect_same(result.losses.at(m), mean_square(expected, batch.targets[m]), "loss");
    }
    if (schedule.rank_of(kExit, number) == rank)
      expect_same(result.local_losses.at(m), Tensors{at::Tensor(), expected[1]}, "local loss");
  }
}

/// Gradients of two micro-batches: a sum of two does not depend on their order.
void expect_plain_training(engine::Engine& engine) {
  const microbatch::Microbatches batch = batch_of_rows({2, 4});
  engine.zero_grad();
  engine.train(batch);
  LeavesEarly model;
  for (size_t m = 0; m < 2; ++m) {
    const Tensors outputs = model.forward(batch.inputs[m]);
    (mean_square(outputs, batch.targets[m]) + outputs[1]).backward();
  }
  const auto expected = model.named_parameters();
  for (const auto& [stage, state] : engine.states())
    for (const auto& [name, parameter] : state.parameters)
      expect_same(parameter.grad(), expected[name].grad() / 2, "gradient of " + name);
}

/// Calls `body` with an engine on each rank of several schedules, of which some have transfers and waits.
void with_engines(const std::function<void(engine::Engine&, const schedule::Schedule&, int rank)>& body) {
  const schedule::Schedule gpipe = schedule::make_schedule("gpipe", 4, 2);
  for (const schedule::Schedule& schedule :
       {gpipe, placed({0, 1, 1, 0}, 2, 2), placed({0, 0, 0, 0}, 1, 2), schedule::lower(gpipe, kEdges),
        schedule::add_send_waits(schedule::lower(gpipe, kEdges))}) {
    SCOPED_TRACE(schedule.name + ", " + std::to_string(schedule.ranks.size()) + " ranks");
    with_ranks(static_cast<int>(schedule.ranks.size()), [&](transport::Transport& transport) {
      at::set_num_threads(1);
      LeavesEarly model;
      engine::Engine engine(transport, schedule, source(model, {{"l1"}, {"l2"}, {"l3"}}),
                            Fleet("mlp", schedule).options);
      body(engine, schedule, transport.rank());
    });
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(EngineEarlyExit, SomeMicrobatchesLeave) {
  with_engines([](engine::Engine& engine, const schedule::Schedule& schedule, int rank) {
    for (const std::vector<int64_t>& rows : std::vector<std::vector<int64_t>>{{2, 4}, {4, 1}, {4, 3}})
      expect_plain_evaluation(engine, schedule, rank, rows);
    expect_plain_training(engine);
    expect_plain_evaluation(engine, schedule, rank, {2, 4});
  });
}

TEST(EngineEarlyExit, AllMicrobatchesLeave) {
  for (bool trains_first : {false, true})
    with_engines([&](engine::Engine& engine, const schedule::Schedule& schedule, int rank) {
      if (trains_first) expect_plain_training(engine);
      for (const std::vector<int64_t>& rows : std::vector<std::vector<int64_t>>{{2, 1}, {2, 4}, {2, 2}, {4, 3}, {2, 1}})
        expect_plain_evaluation(engine, schedule, rank, rows);
      expect_plain_training(engine);
      expect_plain_evaluation(engine, schedule, rank, {1, 2});
    });
}

TEST(EngineEarlyExit, OutputsAreOnTheRankThatTheMicrobatchReached) {
  with_engines([](engine::Engine& engine, const schedule::Schedule& schedule, int rank) {
    const engine::StepResult result = engine.evaluate(batch_of_rows({2, 4}));
    const int ends[] = {schedule.rank_of(kExit, 0), schedule.rank_of(kLast, 1)};
    std::string expected = "accepted";
    for (const int m : {1, 0})
      if (ends[m] != rank && ends[1 - m] == rank)
        expected = "engine: the outputs of micro-batch " + std::to_string(m) + " are on rank " +
                   std::to_string(ends[m]) + ", not on rank " + std::to_string(rank) +
                   "; merge those of all ranks that have some (StepResult::outputs)";
    EXPECT_EQ(refusal([&] { engine.merged_outputs(result); }), expected);
  });
}

TEST(EngineEarlyExit, TheStatesAreCompleteOnceAMicrobatchGoesThroughAllStages) {
  with_engines([](engine::Engine& engine, const schedule::Schedule&, int) {
    const auto held = [&] {
      size_t parameters = 0;
      for (const auto& [stage, state] : engine.states()) parameters += state.parameters.size();
      return parameters;
    };
    engine.evaluate(batch_of_rows({2, 2}));
    // Two of each layer.
    EXPECT_EQ(held(), 2 * (engine.states().count(0) + engine.states().count(kExit)));
    engine.evaluate(batch_of_rows({2, 4}));
    EXPECT_EQ(held(), 2 * engine.states().size() + engine.states().count(kExit)) << "with `late`";
  });
}

TEST(EngineEarlyExit, TooFewStagesAreNoEarlyExit) {
  const schedule::Schedule schedule = schedule::make_schedule("gpipe", 4, 2);
  with_ranks(4, [&](transport::Transport& transport) {
    LeavesEarly model;
    engine::Engine engine(transport, schedule, source(model, {{"l1"}}), Fleet("mlp", schedule).options);
    EXPECT_EQ(refusal([&] { engine.evaluate(batch_of_rows({4, 4})); }),
              "engine: the schedule has 4 stages, the model's split points make 2");
  });
}

}  // namespace
}  // namespace plumbline::testing
