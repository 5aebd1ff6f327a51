// A loss function with parameters: those that a stage holds get their gradients as the stage's others do, and all
// others are refused. Compared with plain autograd over the whole module.
#include <ATen/ops/equal.h>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::testing {
namespace {

struct OwnLoss : torch::nn::Module {
  OwnLoss()
      : scale(register_parameter("scale", waves({1}, 0.7) + 1.5)),
        shift(register_parameter("shift", waves({1}, 0.2))) {}
  at::Tensor scale, shift;
};

/// Registers the parameters of the loss in `net`.
engine::LossFunction add_loss(Net& net) {
  const auto own = std::make_shared<OwnLoss>();
  net.register_module("loss", own);
  return [own](const Tensors& outputs, const microbatch::Targets& targets) {
    return mean_square({at::add(at::mul(outputs[0], own->scale), own->shift)}, targets.one());
  };
}

/// Steps that add up, with an evaluation between them.
TEST(EngineLossParameters, GetTheirGradientsUnderEverySchedule) {
  const at::Tensor x = batch_of("mlp", 10), target = target_of("mlp", 10);
  for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe-v"}) {
    SCOPED_TRACE(name);
    const schedule::Schedule schedule = schedule::make_schedule(name, 2, 4);
    Oracle oracle("mlp", schedule.stages, 4);
    oracle.loss = add_loss(*oracle.net);
    oracle.follow(schedule);
    Fleet fleet("mlp", schedule);
    fleet.split.loss_parameters = {"loss.scale", "loss.shift"};
    std::vector<engine::LossFunction> losses;
    for (const std::shared_ptr<Net>& net : fleet.nets) losses.push_back(add_loss(*net));
    fleet.adjust = [&](engine::EngineOptions& options, int rank) { options.loss = losses[rank]; };
    Told ours[3];
    fleet.run([&](engine::Engine& engine, int) {
      fleet.tell(ours[0], engine, engine.train({x}, target));
      fleet.tell(ours[1], engine, engine.evaluate({x}, target));
      fleet.tell(ours[2], engine, engine.train({x}, target));
    });
    const Told first = oracle.train(x, target), evaluated = oracle.evaluate(x, target);
    expect_same(ours[0], first);
    expect_same(ours[1].losses, evaluated.losses, "loss of the evaluation, micro-batch");
    expect_same(ours[2], oracle.train(x, target));
    EXPECT_TRUE(ours[0].gradients.at("loss.scale").defined());
  }
}

/// A penalty on weights of the last stage, which the loss reads.
TEST(EngineLossParameters, MayBeThoseOfTheStageThatComputesTheLoss) {
  const at::Tensor x = batch_of("mlp", 6), target = target_of("mlp", 6);
  const auto with_penalty = [](const std::shared_ptr<Net>& net) -> engine::LossFunction {
    return [net](const Tensors& outputs, const microbatch::Targets& targets) {
      return mean_square(outputs, targets.one()) + net->layers.back()->weight.square().sum();
    };
  };
  for (const char* name : {"1f1b", "zb-h1"}) {
    SCOPED_TRACE(name);
    const schedule::Schedule schedule = schedule::make_schedule(name, 2, 3);
    Oracle oracle("mlp", 2, 3);
    oracle.loss = with_penalty(oracle.net);
    Fleet fleet("mlp", schedule);
    fleet.adjust = [&](engine::EngineOptions& options, int rank) { options.loss = with_penalty(fleet.nets[rank]); };
    Told ours;
    fleet.run([&](engine::Engine& engine, int) { fleet.tell(ours, engine, engine.train({x}, target)); });
    expect_same(ours, oracle.train(x, target));
  }
}

constexpr const char* kForeign =
    "rank 0, position 0 (0F0): engine: the loss of micro-batch 0 depends on a tensor f32[1] that requires a gradient "
    "and is no parameter of stage 0, which computes it; register it in the model, name it in "
    "SplitOptions::loss_parameters and read it in Engine::states(), or detach it";

TEST(EngineLossParameters, OfNoStageAreRefused) {
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
  for (const char* name : {"gpipe", "zb-h1"}) {
    SCOPED_TRACE(name);
    const at::Tensor foreign = waves({1}, 0.7).requires_grad_();
    Fleet fleet("mlp", schedule::make_schedule(name, 1, 2));
    bool detached = false;
    fleet.options.loss = [&](const Tensors& outputs, const at::Tensor& of) {
      // Behind several nodes, and beside a product of the outputs.
      const at::Tensor factor = at::mul(detached ? foreign.detach() : foreign, 2).exp();
      return mean_square({at::mul(outputs[0], factor)}, of);
    };
    fleet.run([&](engine::Engine& engine, int) {
      engine.evaluate({x}, target);
      EXPECT_EQ(refusal([&] { engine.train({x}, target); }), kForeign);
      EXPECT_EQ(refusal([&] { engine.train({x}, target); }), kForeign) << "after a failed step";
      detached = true;
      engine.train({x}, target);
    });
    EXPECT_FALSE(foreign.grad().defined());
  }
}

/// In another schedule they are on another rank, or sharded when the loss is computed.
TEST(EngineLossParameters, OfAnotherStageOfTheRankAreRefused) {
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
  Fleet fleet("mlp", placed({0, 0}, 1, 2));
  fleet.options.loss = [&](const Tensors& outputs, const at::Tensor& of) {
    return mean_square(outputs, of) + fleet.nets[0]->layers.front()->weight.square().sum();
  };
  fleet.run([&](engine::Engine& engine, int) {
    expect_part(
        refusal([&] { engine.train({x}, target); }),
        "depends on a tensor f32[6,6] that requires a gradient and is no parameter of stage 1, which computes it");
  });
}

TEST(EngineLossParameters, ATargetThatRequiresAGradientIsRefused) {
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4).clone().requires_grad_();
  Fleet fleet("mlp", schedule::make_schedule("gpipe", 1, 2));
  fleet.run([&](engine::Engine& engine, int) {
    expect_part(refusal([&] { engine.train({x}, target); }), "that requires a gradient and is no parameter");
  });
  EXPECT_FALSE(target.grad().defined());
}

}  // namespace
}  // namespace plumbline::testing
