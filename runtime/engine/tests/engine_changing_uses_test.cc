// Steps that use a parameter or a buffer in other stages than the steps before: compared with plain autograd over the
// whole module.
#include <functional>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/testing/refusal.h"

namespace plumbline::testing {
namespace {

/// Calls `body` with an engine on each rank.
template <class Model>
void with_engine(const schedule::Schedule& schedule, const split::SplitOptions& split,
                 const std::function<void(engine::Engine&)>& body) {
  SCOPED_TRACE(schedule.name);
  with_ranks(static_cast<int>(schedule.ranks.size()), [&](transport::Transport& transport) {
    at::set_num_threads(1);
    Model model;
    const engine::PipeSource source = [&](bool training, const Tensors& inputs) {
      const capture::ForwardFunction forward = [&](const Tensors& in) { return model.forward(in); };
      return split::make_pipe({&model, forward, {"x"}}, inputs, training, split);
    };
    engine::Engine engine(transport, schedule, source, Fleet("mlp", schedule).options);
    body(engine);
  });
}

/// A step on two micro-batches of two rows gives every copy of a parameter the gradient of plain autograd.
template <class Model>
void expect_plain_step(engine::Engine& engine) {
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
  engine.zero_grad();
  engine.train({x}, target);
  Model model;
  const Tensors xs = x.tensor_split(2), targets = target.tensor_split(2);
  for (int m = 0; m < 2; ++m) mean_square(model.forward({xs[m]}), targets[m]).backward();
  const auto expected = model.named_parameters();
  for (const auto& [stage, state] : engine.states())
    for (const auto& [name, parameter] : state.parameters)
      expect_same(parameter.grad(), expected[name].grad() / 2,
                  "gradient of " + name + " in stage " + std::to_string(stage));
}

/// Two stages. For micro-batches of more than two rows the second one uses the first one's weight again.
struct UsesAgain : torch::nn::Module {
  UsesAgain()
      : weight(register_parameter("weight", waves({kWidth, kWidth}, 0))),
        last(register_module("last", std::make_shared<Layer>(1))) {}
  Tensors forward(const Tensors& in) {
    at::Tensor h = at::gelu(at::linear(in[0], weight));
    capture::pipe_split();
    h = last->forward(h);
    if (in[0].size(0) > 2) h = at::linear(at::gelu(h), weight);
    return {h};
  }
  at::Tensor weight;
  std::shared_ptr<Layer> last;
};

TEST(EngineChangingUses, ACopyThatTheStepDoesNotUseGetsTheGradient) {
  const at::Tensor x = batch_of("mlp", 6), target = target_of("mlp", 6);
  for (const schedule::Schedule& schedule : {schedule::make_schedule("1f1b", 2, 2), placed({0, 0}, 1, 2)}) {
    with_engine<UsesAgain>(schedule, {}, [&](engine::Engine& engine) {
      engine.train({x}, target);
      expect_plain_step<UsesAgain>(engine);
    });
    with_engine<UsesAgain>(schedule, {}, [&](engine::Engine& engine) {
      engine.evaluate({x}, target);
      expect_plain_step<UsesAgain>(engine);
    });
  }
}

/// Three stages. Training scales in the first one. An evaluation scales in the second one, behind which it leaves with
/// micro-batches of less than three rows.
struct ScalesElsewhere : torch::nn::Module {
  ScalesElsewhere() : scale(register_parameter("scale", waves({kWidth}, 6))) {
    for (int i = 0; i < 3; ++i) layers.push_back(register_module("l" + std::to_string(i), std::make_shared<Layer>(i)));
  }
  Tensors forward(const Tensors& in) {
    at::Tensor h = capture::call(layers[0], in[0]);
    if (is_training()) h = h * scale;
    h = capture::call(layers[1], h);
    if (!is_training()) h = h * scale;
    if (!is_training() && in[0].size(0) < 3) return {h};
    return {capture::call(layers[2], h)};
  }
  at::Tensor scale;
  std::vector<std::shared_ptr<Layer>> layers;
};

TEST(EngineChangingUses, ACopyOfAnEvaluationThatLeftEarlyGetsTheGradientOnce) {
  split::SplitOptions split;
  split.points = {{"l1"}, {"l2"}};
  split.exits_early = true;
  for (const schedule::Schedule& schedule : {schedule::make_schedule("gpipe", 3, 2), placed({0, 0, 0}, 1, 2)})
    with_engine<ScalesElsewhere>(schedule, split, [](engine::Engine& engine) {
      engine.evaluate({batch_of("mlp", 4)}, target_of("mlp", 4));
      expect_plain_step<ScalesElsewhere>(engine);
    });
}

/// The first stage divides by a scale, which training doubles before; the second stage multiplies by it.
struct Normalises : torch::nn::Module {
  Normalises()
      : scale(register_buffer("scale", waves({kWidth}, 4).abs().add(1))),
        first(register_module("first", std::make_shared<Layer>(0))),
        last(register_module("last", std::make_shared<Layer>(1))) {}
  Tensors forward(const Tensors& in) {
    if (is_training()) scale.mul_(2);
    const at::Tensor h = first->forward(in[0] / scale);
    capture::pipe_split();
    return {last->forward(h) * scale};
  }
  at::Tensor scale;
  std::shared_ptr<Layer> first, last;
};

TEST(EngineChangingUses, ABufferThatIsWrittenWhereAnotherStageHasACopyIsRefused) {
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
  for (const schedule::Schedule& schedule : {schedule::make_schedule("1f1b", 2, 2), placed({0, 0}, 1, 2)}) {
    with_engine<Normalises>(schedule, {}, [&](engine::Engine& engine) {
      engine.evaluate({x}, target);
      expect_line(refusal([&] { engine.train({x}, target); }), "engine: the forward of stage 0 writes 'scale'",
                  "of which stage 1 has a copy");
    });
    with_engine<Normalises>(schedule, {}, [&](engine::Engine& engine) { expect_plain_step<Normalises>(engine); });
  }
}

TEST(EngineChangingUses, BuffersOfOneStageMayBeWrittenAfterAnEvaluation) {
  const at::Tensor x = batch_of("batch norm", 6), target = target_of("batch norm", 6);
  Oracle oracle("batch norm", 2, 2);
  Fleet fleet("batch norm", schedule::make_schedule("gpipe", 2, 2));
  Told ours;
  fleet.run([&](engine::Engine& engine, int) {
    engine.evaluate({x}, target);
    fleet.tell(ours, engine, engine.train({x}, target));
  });
  expect_same(ours, oracle.train(x, target));
}

}  // namespace
}  // namespace plumbline::testing
