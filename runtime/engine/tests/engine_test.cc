// Compares the engine bitwise with plain autograd over the whole module.
#include "runtime/engine/engine.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/error.h"
#include "runtime/testing/parameter_name.h"

namespace plumbline::testing {
namespace {

at::Tensor generator_state() { return at::detail::getDefaultCPUGenerator().get_state(); }

void expect_one_step_like_oracle(const std::string& kind, const schedule::Schedule& schedule, int64_t rows) {
  SCOPED_TRACE(kind + ", " + schedule.name + ", " + std::to_string(schedule.ranks.size()) + " ranks, " +
               std::to_string(schedule.stages) + " stages, " + std::to_string(schedule.microbatches) +
               " micro-batches, " + std::to_string(rows) + " rows");
  const at::Tensor x = batch_of(kind, rows), target = target_of(kind, rows);
  Oracle oracle(kind, schedule.stages, schedule.microbatches);
  Fleet fleet(kind, schedule);
  oracle.seed = fleet.options.seed = 11;
  expect_same(fleet.train(x, target), oracle.train(x, target));
}

class EveryKind : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryKind, EqualsAutogradOnRanksAndMicrobatches) {
  for (const char* name : {"gpipe", "1f1b"})
    for (int ranks : {1, 2, 3, 4})
      for (int microbatches : {1, 2, 3, 4, 7}) {
        expect_one_step_like_oracle(GetParam(), schedule::make_schedule(name, ranks, microbatches), 2 * microbatches);
        if (HasFatalFailure()) return;
      }
}

TEST_P(EveryKind, EqualsAutogradWithSeveralStagesOnARank) {
  for (const schedule::Schedule& schedule :
       {placed({0, 1, 1, 0}, 2, 3), placed({0, 0, 0, 0}, 1, 3), placed({0, 0, 0, 0}, 1, 3, /*depth_first=*/true),
        placed({1, 0, 2}, 3, 2), placed({0, 0, 1, 1}, 2, 1), placed({0, 2, 1, 2}, 3, 4)}) {
    expect_one_step_like_oracle(GetParam(), schedule, 2 * schedule.microbatches);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Engine, EveryKind,
                         ::testing::Values("mlp", "skip", "tied", "dropout", "batch norm", "two outputs", "integers",
                                           "frozen", "frozen early", "unused"),
                         testing::ParameterName());

TEST(Engine, SumsInTheOrderOfTheBackwards) {
  const at::Tensor x = batch_of("mlp", 7), target = target_of("mlp", 7);
  Oracle oracle("mlp", 2, 7), ascending("mlp", 2, 7);
  oracle.backward_order = {6, 5, 4, 3, 2, 1, 0};
  Fleet fleet("mlp", placed({0, 1}, 2, 7, false, /*descending=*/true));
  const Told theirs = oracle.train(x, target);
  ASSERT_FALSE(at::equal(theirs.gradients.at("l0.weight"), ascending.train(x, target).gradients.at("l0.weight")))
      << "the order makes no difference to these numbers";
  expect_same(fleet.train(x, target), theirs);
}

TEST(Engine, StepsAccumulateAndEvaluationBetweenChangesNothing) {
  for (const std::string kind : {"mlp", "tied", "batch norm", "dropout", "unused"}) {
    for (const schedule::Schedule& schedule :
         {schedule::make_schedule("1f1b", 4, 3), schedule::make_schedule("gpipe", 2, 3), placed({0, 1, 0}, 2, 3)}) {
      SCOPED_TRACE(kind + " " + schedule.name);
      const at::Tensor x1 = batch_of(kind, 6), x2 = batch_of(kind, 6, 3.3), target = target_of(kind, 6);
      Oracle oracle(kind, schedule.stages, 3);
      Fleet fleet(kind, schedule);
      oracle.seed = fleet.options.seed = 5;
      const Told first = oracle.train(x1, target), evaluated = oracle.evaluate(x2, target),
                 second = oracle.train(x2, target);
      at::manual_seed(77);
      const at::Tensor generator = generator_state();
      Told ours_first, ours_evaluated, ours_second;
      fleet.run([&](engine::Engine& engine, int) {
        fleet.tell(ours_first, engine, engine.train({x1}, target));
        for (int again = 0; again < 2; ++again) {
          const engine::StepResult result = engine.evaluate({x2}, target);
          if (again == 1) fleet.tell(ours_evaluated, engine, result);
        }
        fleet.tell(ours_second, engine, engine.train({x2}, target));
      });
      EXPECT_TRUE(at::equal(generator, generator_state())) << "the default generator moved";
      expect_same(ours_first, first);
      expect_same(ours_evaluated.losses, evaluated.losses, "evaluation loss");
      expect_same(ours_evaluated.outputs, evaluated.outputs, "evaluation output");
      expect_same(ours_evaluated.gradients, first.gradients, "gradient after evaluation");
      expect_same(ours_evaluated.buffers, first.buffers, "buffer after evaluation");
      expect_same(ours_second, second);
      if (HasFatalFailure()) return;
    }
  }
}

/// The next step adds to .grad in place, as autograd does, but not where another tensor has that memory.
TEST(Engine, DoesNotAddToMemoryOfAGradientThatTheUserKeeps) {
  const at::Tensor x = batch_of("mlp", 6), target = target_of("mlp", 6);
  Fleet fleet("mlp", schedule::make_schedule("1f1b", 2, 3));
  fleet.run([&](engine::Engine& engine, int) {
    engine.train({x}, target);
    std::vector<std::pair<at::Tensor, at::Tensor>> kept;  // what the user has, and its value
    for (const auto& [stage, state] : engine.states())
      for (const auto& [name, parameter] : state.parameters)
        kept.emplace_back(parameter.grad().detach(), parameter.grad().clone());
    engine.train({x}, target);
    auto next = kept.begin();
    for (const auto& [stage, state] : engine.states())
      for (const auto& [name, parameter] : state.parameters) {
        EXPECT_TRUE(at::equal(next->first, next->second)) << name;
        EXPECT_TRUE(at::equal(parameter.grad(), at::mul(next->second, 2))) << name;
        ++next;
      }
  });
}

TEST(Engine, ABatchThatComesDividedIsTheSame) {
  for (const std::string name : {"gpipe", "1f1b", "zb-h1", "dualpipe"}) {
    SCOPED_TRACE(name);
    const at::Tensor x = batch_of("mlp", 10), target = target_of("mlp", 10);  // 3, 3, 2, 2 rows
    const int ranks = name == "dualpipe" ? 2 : 4;
    Fleet fleet("mlp", schedule::make_schedule(name, ranks, 4)), other("mlp", schedule::make_schedule(name, ranks, 4));
    const microbatch::Microbatches divided{
        {{x.slice(0, 0, 3)}, {x.slice(0, 3, 6)}, {x.slice(0, 6, 8)}, {x.slice(0, 8, 10)}},
        {target.slice(0, 0, 3), target.slice(0, 3, 6), target.slice(0, 6, 8), target.slice(0, 8, 10)}};
    Told whole, evaluated, parts, evaluated_parts;
    fleet.run([&](engine::Engine& engine, int) {
      fleet.tell(evaluated, engine, engine.evaluate({x}, target));
      fleet.tell(whole, engine, engine.train({x}, target));
    });
    other.run([&](engine::Engine& engine, int) {
      other.tell(evaluated_parts, engine, engine.evaluate(divided));
      other.tell(parts, engine, engine.train(divided));
    });
    expect_same(parts, whole);
    expect_same(evaluated_parts.outputs, evaluated.outputs, "evaluation output");
    expect_same(evaluated_parts.losses, evaluated.losses, "evaluation loss");
    if (HasFatalFailure()) return;
  }
}

TEST(Engine, EvaluatesBeforeItEverTrained) {
  for (const std::string kind : {"mlp", "tied", "batch norm", "two outputs"}) {
    SCOPED_TRACE(kind);
    const at::Tensor x = batch_of(kind, 6), target = target_of(kind, 6);
    Oracle oracle(kind, 3, 3);
    Fleet fleet(kind, schedule::make_schedule("1f1b", 3, 3));
    const Told evaluated = oracle.evaluate(x, target), trained = oracle.train(x, target);
    Told ours_evaluated, ours_trained;
    fleet.run([&](engine::Engine& engine, int) {
      fleet.tell(ours_evaluated, engine, engine.evaluate({x}, target));
      fleet.tell(ours_trained, engine, engine.train({x}, target));
    });
    expect_same(ours_evaluated.outputs, evaluated.outputs, "evaluation output");
    for (const auto& [name, grad] : ours_evaluated.gradients) EXPECT_FALSE(grad.defined()) << name;
    expect_same(ours_trained, trained);
  }
}

TEST(Engine, ZeroGradLeavesNone) {
  const at::Tensor x = batch_of("tied", 4), target = target_of("tied", 4);
  Fleet fleet("tied", schedule::make_schedule("gpipe", 2, 2));
  Oracle oracle("tied", 2, 2);
  const Told theirs = oracle.train(x, target);
  Told cleared, ours;
  fleet.run([&](engine::Engine& engine, int) {
    engine.train({x}, target);
    engine.zero_grad();
    fleet.tell(cleared, engine, {});
    fleet.tell(ours, engine, engine.train({x}, target));
  });
  for (const auto& [name, grad] : cleared.gradients) EXPECT_FALSE(grad.defined()) << name;
  expect_same(ours, theirs);
}

TEST(Engine, DividesOnlyWhenAsked) {
  const engine::LossFunction sum = [](const Tensors& outputs, const at::Tensor& target) {
    return at::mse_loss(outputs[0], target, at::Reduction::Sum);
  };
  for (bool divide : {false, true}) {
    const at::Tensor x = batch_of("tied", 7), target = target_of("tied", 7);
    Fleet fleet("tied", schedule::make_schedule("1f1b", 4, 3));
    Oracle oracle("tied", 4, 3);
    fleet.options.loss = oracle.loss = sum;
    fleet.options.divide_by_microbatches = oracle.divide = divide;
    expect_same(fleet.train(x, target), oracle.train(x, target));
  }
}

TEST(Engine, MeanLossOverUnevenMicrobatchesIsTheMeanOverTheBatch) {
  const at::Tensor x = batch_of("skip", 7), target = target_of("skip", 7);
  for (int ranks : {1, 2, 4}) {
    Fleet fleet("skip", schedule::make_schedule("1f1b", ranks, 3));
    Oracle oracle("skip", ranks, 3);
    fleet.options.mean_loss = oracle.weighted = true;
    expect_same(fleet.train(x, target), oracle.train(x, target));
  }
}

TEST(Engine, MeanLossOverUnevenMicrobatchesIsThatOfTheWholeBatchToTheBit) {
  // Exact in float. 2, 1 and 1 of 4 rows weigh 3/2, 3/4 and 3/4, so that a gradient of an output is 3/4 of its target.
  // Weights are -1, 0 or 1, inputs and targets whole numbers up to 2: hidden values are whole, at most 13, 79 and 475
  // after the first layers, their gradients multiples of 1/4, at most 324, 54, 9 and 3/2; so every sum for a weight is
  // a multiple of 1/4 below 4 * 3/2 * 475 = 2850. The sum of the micro-batches is three times the whole's gradient.
  const at::Tensor x = waves({4, kWidth}, 0.1).mul(2).round(), target = waves({4, kWidth}, 2.5).mul(2).round();
  const engine::LossFunction products = [](const Tensors& outputs, const at::Tensor& target) {
    return (outputs[0] * target).sum(1).mean();
  };
  Oracle whole("whole numbers", 4, 1);
  whole.loss = products;
  const Told theirs = whole.train(x, target);
  for (int ranks : {1, 2, 4}) {
    Fleet fleet("whole numbers", schedule::make_schedule("1f1b", ranks, 3));
    fleet.options.loss = products;
    fleet.options.mean_loss = true;
    expect_same(fleet.train(x, target).gradients, theirs.gradients, "gradient");
  }
}

TEST(Engine, ShapesMayChangeFromStepToStep) {
  for (const char* name : {"gpipe", "1f1b"}) {
    Fleet fleet("batch norm", schedule::make_schedule(name, 3, 2));
    Oracle oracle("batch norm", 3, 2);
    std::vector<Told> ours(5), theirs;
    const int64_t rows[] = {8, 5, 8, 6, 5};
    for (int64_t n : rows) theirs.push_back(oracle.train(batch_of("mlp", n), target_of("mlp", n)));
    fleet.run([&](engine::Engine& engine, int) {
      for (int i = 0; i < 5; ++i)
        fleet.tell(ours[i], engine, engine.train({batch_of("mlp", rows[i])}, target_of("mlp", rows[i])));
    });
    for (int i = 0; i < 5; ++i) expect_same(ours[i], theirs[i]);
  }
}

TEST(Engine, DropoutIsTheSameOnAnyRanksAndAtAnyTime) {
  const at::Tensor x = batch_of("dropout", 8), target = target_of("dropout", 8);
  Oracle oracle("dropout", 4, 4), other_seed("dropout", 4, 4);
  oracle.seed = 3;
  other_seed.seed = 4;
  const Told first = oracle.train(x, target), second = oracle.train(x, target);
  ASSERT_FALSE(at::equal(first.outputs[0], second.outputs[0])) << "steps must draw anew";
  ASSERT_FALSE(at::equal(first.outputs[0], other_seed.train(x, target).outputs[0]));
  for (const schedule::Schedule& schedule :
       {schedule::make_schedule("1f1b", 4, 4), placed({0, 1, 1, 0}, 2, 4), placed({0, 0, 0, 0}, 1, 4)})
    for (int again = 0; again < 5; ++again) {
      Fleet fleet("dropout", schedule);
      fleet.options.seed = 3;
      Told ours_first, ours_second;
      fleet.run([&](engine::Engine& engine, int) {
        fleet.tell(ours_first, engine, engine.train({x}, target));
        fleet.tell(ours_second, engine, engine.train({x}, target));
      });
      expect_same(ours_first, first);
      expect_same(ours_second, second);
      if (HasFatalFailure()) return;
    }
}

struct Watcher : engine::EngineObserver {
  void on_forward(int stage, int microbatch, const std::string& name, const at::Tensor& value) override {
    add("F", stage, microbatch, name, value);
  }
  void on_backward(int stage, int microbatch, const std::string& name, const at::Tensor& grad) override {
    add("B", stage, microbatch, name, grad);
  }
  void on_parameter_gradient(int stage, int microbatch, const std::string& name, const at::Tensor& grad) override {
    add("P", stage, microbatch, name, grad);
  }
  void add(const std::string& kind, int stage, int microbatch, const std::string& name, const at::Tensor& tensor) {
    const auto key = kind + std::to_string(stage) + " " + std::to_string(microbatch) + " " + name;
    EXPECT_FALSE(tensor.requires_grad()) << key;
    EXPECT_TRUE(seen.emplace(key, tensor).second) << key << " was reported twice";
    ++count[kind + std::to_string(stage)];
  }
  testing::NamedTensors seen;
  std::map<std::string, int> count;
};

TEST(Engine, ObserverSeesEveryBoundaryOnce) {
  for (const schedule::Schedule& schedule : {schedule::make_schedule("1f1b", 4, 3), placed({0, 1, 1, 0}, 2, 3)}) {
    // Skip: the first layer's value goes to stages 1, 2 and 3. Integers: input and code go from stage 0 to 3.
    const std::map<std::string, std::map<std::string, int>> expected = {
        {"skip",
         {{"F0", 3},
          {"F1", 3},
          {"F2", 3},
          {"B1", 3},
          {"B2", 6},
          {"B3", 6},
          {"P0", 6},
          {"P1", 6},
          {"P2", 6},
          {"P3", 6}}},
        {"integers",
         {{"F0", 9},
          {"F1", 3},
          {"F2", 3},
          {"B1", 3},
          {"B2", 3},
          {"B3", 3},
          {"P0", 6},
          {"P1", 6},
          {"P2", 6},
          {"P3", 9}}},
        {"frozen early", {{"F0", 3}, {"F1", 3}, {"F2", 3}, {"B2", 3}, {"B3", 3}, {"P1", 6}, {"P2", 6}, {"P3", 6}}}};
    for (const auto& [kind, counts] : expected) {
      SCOPED_TRACE(kind);
      std::vector<Watcher> watchers(schedule.ranks.size());
      Fleet fleet(kind, schedule);
      fleet.adjust = [&](engine::EngineOptions& options, int rank) { options.observer = &watchers[rank]; };
      const Told ours = fleet.train(batch_of(kind, 6), target_of(kind, 6));
      Watcher all;
      for (Watcher& watcher : watchers) {
        all.seen.merge(watcher.seen);
        all.count.merge(watcher.count);
      }
      EXPECT_EQ(all.count, counts);
      for (const auto& [name, grad] : ours.gradients)
        if (grad.defined()) {
          const std::string stage = name.starts_with("l") ? name.substr(1, 1) : "3";
          expect_same(all.seen.at("P" + stage + " 2 " + name) / 3, grad, name);
        }
    }
  }
}

TEST(Engine, StridesOfABoundaryMakeNoDifferenceBetweenPlacements) {
  const at::Tensor x = batch_of("strided", 10), target = target_of("strided", 10);
  const auto on = [&](std::vector<int> rank_of_stage, int ranks) {
    return Fleet("strided", placed(std::move(rank_of_stage), ranks, 5)).train(x, target);
  };
  Oracle oracle("strided", 4, 5);
  oracle.net->contiguous_borders = true;
  const Told theirs = oracle.train(x, target);
  expect_same(on({0, 0, 0, 0}, 1), theirs);
  expect_same(on({0, 1, 1, 0}, 2), theirs);
  expect_same(on({0, 1, 2, 3}, 4), theirs);
}

/// Two stages; only training uses the second's parameter, which is registered first.
struct TrainsAHead : torch::nn::Module {
  TrainsAHead()
      : head(register_parameter("head", waves({kWidth}, 4))), w(register_parameter("w", waves({kWidth}, 1))) {}
  Tensors forward(const Tensors& in) {
    const at::Tensor h = in[0] * w;
    capture::pipe_split();
    return {h * (is_training() ? head : at::ones({kWidth}))};
  }
  at::Tensor head, w;
};

TEST(Engine, ParameterThatOnlyTrainingUses) {
  for (bool evaluate_first : {false, true}) {
    const auto body = [&](transport::Transport& transport) {
      TrainsAHead model;
      engine::EngineOptions options = Fleet("mlp", schedule::make_schedule("gpipe", 2, 2)).options;
      const engine::PipeSource source = [&](bool training, const Tensors& inputs) {
        const capture::ForwardFunction forward = [&](const Tensors& in) { return model.forward(in); };
        return split::make_pipe({&model, forward, {"x"}}, inputs, training, {});
      };
      engine::Engine engine(transport, schedule::make_schedule("gpipe", 2, 2), source, options);
      const at::Tensor x = waves({4, kWidth}, 0);
      if (evaluate_first) engine.evaluate({x}, x);
      engine.train({x}, x);
      const engine::StepResult result = engine.evaluate({x}, x);
      if (transport.rank() == 1)
        expect_same(microbatch::merge_outputs(result.outputs, {})[0], x * model.w.detach(), "output");
      EXPECT_EQ(model.head.grad().defined(), transport.rank() == 1);
    };
    if (!evaluate_first) {
      with_ranks(2, body);
      continue;
    }
    try {
      with_ranks(2, body);
      FAIL() << "no rank owns 'head' in stage 1";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("a stage uses 'head', which it did not"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Engine, TrainsAlsoWhereTheCallerRecordsNoGradients) {
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
  Told ours;
  Fleet fleet("mlp", schedule::make_schedule("gpipe", 2, 2));
  fleet.run([&](engine::Engine& engine, int) {
    const at::NoGradGuard no_grad;
    fleet.tell(ours, engine, engine.train({x}, target));
  });
  expect_same(ours, Oracle("mlp", 2, 2).train(x, target));
}

TEST(Engine, GradientOfAnInputThatSeveralStagesUseIsSummedFromTheLast) {
  // Powers of two that float can only add in one order without loss: (2^25 - 2^25) + 1 is 1, 2^25 + (1 - 2^25) is 0.
  struct Fan : torch::nn::Module {
    Fan() : w(register_parameter("w", at::ones({1}))) {}
    Tensors forward(const Tensors& in) {
      const at::Tensor h = in[0] * w;
      capture::pipe_split();
      at::Tensor y = h * 1;
      capture::pipe_split();
      y = y + h * -33554432.0;
      capture::pipe_split();
      return {y + h * 33554432.0};
    }
    at::Tensor w;
  };
  for (const schedule::Schedule& schedule : {schedule::make_schedule("gpipe", 4, 1), placed({0, 1, 1, 0}, 2, 1)}) {
    Fleet fleet("mlp", schedule);
    fleet.options.loss = [](const Tensors& outputs, const at::Tensor&) { return outputs[0].sum(); };
    at::Tensor grad;
    with_ranks(static_cast<int>(schedule.ranks.size()), [&](transport::Transport& transport) {
      Fan fan;
      const capture::ForwardFunction forward = [&](const Tensors& in) { return fan.forward(in); };
      const engine::PipeSource source = [&](bool training, const Tensors& inputs) {
        return split::make_pipe({&fan, forward, {"x"}}, inputs, training, {});
      };
      engine::Engine engine(transport, schedule, source, fleet.options);
      engine.train({at::ones({1})}, {});
      if (engine.states().contains(0)) grad = fan.w.grad();
    });
    EXPECT_EQ(grad.item<float>(), 1.0f);
  }
}

}  // namespace
}  // namespace plumbline::testing
