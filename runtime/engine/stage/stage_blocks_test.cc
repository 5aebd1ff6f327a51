// Recompute by blocks of a stage: equals the same run without it, and plain autograd over the whole model, bitwise.
#include "runtime/engine/stage/stage_blocks.h"

#include <ATen/ATen.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/autograd.h>

#include "runtime/backward/split/split_backward.h"
#include "runtime/backward/stage_backward.h"
#include "runtime/capture/interpose.h"
#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/error.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/testing/refusal.h"

namespace plumbline::testing {
namespace {

constexpr int kLayers = 4;

/// Counts the calls of gelu, which each layer makes once.
class Gelus : public capture::Interposer {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override {
    count += op.operator_name().name == "aten::gelu";
    op.callBoxed(stack);
  }
  int count = 0;
};

class Bytes : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override { alive += size; }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t alive = 0;
};

/// A residual layer with everything that a second run could get wrong: batch statistics, dropout, an in-place change.
struct Residual : torch::nn::Module {
  explicit Residual(double phase) : linear(register_module("linear", std::make_shared<Layer>(phase))) {}
  at::Tensor forward(const at::Tensor& x, const at::Tensor& tied) {
    at::Tensor h = at::gelu(call(norm, call(linear, x)));
    if (tied.defined()) h = h.matmul(tied);
    h.mul_(0.5);
    return x + at::dropout(h, 0.4, is_training());
  }
  std::shared_ptr<Layer> linear;
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(kWidth));
};

/// An entry, four layers, the first and the last with a parameter of both, and a head.
struct Deep : torch::nn::Module {
  explicit Deep(int stages) : stages(stages) {
    for (int i = 0; i < kLayers; ++i) layers->push_back(std::make_shared<Residual>(i));
  }
  Tensors forward(const Tensors& in) {
    at::Tensor h = call(entry, in[0]).sin();
    for (int i = 0; i < kLayers; ++i) {
      if (i > 0 && i * stages / kLayers != (i - 1) * stages / kLayers) capture::pipe_split();
      auto layer = layers->ptr<Residual>(i);
      h = call(layer, h, i == 0 || i == kLayers - 1 ? tied : at::Tensor());
    }
    return {call(head, h)};
  }
  int stages;
  std::shared_ptr<Layer> entry = register_module("entry", std::make_shared<Layer>(7)),
                         head = register_module("head", std::make_shared<Layer>(8));
  torch::nn::ModuleList layers = register_module("layers", torch::nn::ModuleList());
  at::Tensor tied = register_parameter("tied", waves({kWidth, kWidth}, 9));
};

split::SplitOptions loss_first() {
  split::SplitOptions options;
  options.loss_outputs = std::vector<int>{0};
  return options;
}

/// Two steps of the engine: their results, and the number of gelu calls by the ranks in the second step.
std::pair<Told, int> steps(int ranks, int microbatches, const std::string& schedule,
                           const engine::RecomputeOptions& recompute) {
  engine::EngineOptions options;
  options.input_names = {"x"};
  options.input_chunks = {microbatch::ChunkSpec{}};
  options.loss = mean_square;
  options.timeout = std::chrono::seconds(30);
  options.seed = 21;
  options.recompute = recompute;
  Told told;
  int gelus = 0;
  std::mutex mutex;
  with_ranks(ranks, [&](transport::Transport& transport) {
    at::set_num_threads(1);
    Deep model(ranks);
    const engine::PipeSource source = [&](bool training, const Tensors& inputs) {
      return split::make_pipe({&model, [&](const Tensors& in) { return model.forward(in); }, {"x"}}, inputs, training,
                              loss_first());
    };
    engine::Engine engine(transport, schedule::make_schedule(schedule, ranks, microbatches), source, options);
    const at::Tensor x = waves({5 * microbatches, kWidth}, 0.1), target = waves({5 * microbatches, kWidth}, 2.5);
    engine.train({x}, target);
    Gelus counted;
    engine::StepResult result;
    {
      const capture::InterposerScope scope(counted);
      result = engine.train({x}, target);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    gelus += counted.count;
    if (!result.outputs.empty())
      told.losses = result.losses, told.outputs = microbatch::merge_outputs(result.outputs, {});
    for (const auto& [stage, state] : engine.states()) {
      for (const auto& [name, tensor] : state.parameters) told.gradients.emplace(name, tensor.grad().clone());
      for (const auto& [name, tensor] : state.buffers) told.buffers.emplace(name, tensor.clone());
    }
  });
  return {told, gelus};
}

TEST(StageBlocks, KeepTheBitsInTheEngineForEveryPolicy) {
  constexpr int kMicrobatches = 3, kForwards = kLayers * kMicrobatches;
  for (const int ranks : {1, 2, 4})
    for (const std::string schedule : {"gpipe", "1f1b", "zb-h1", "zb-h2"}) {
      const auto [plain, plain_gelus] = steps(ranks, kMicrobatches, schedule, {});
      EXPECT_EQ(plain_gelus, kForwards);
      EXPECT_EQ(plain.buffers.size(), 3u * kLayers);
      for (const std::string blocks : {"", "layers"})
        for (const auto& [policy, gelus] : {std::pair{engine::Recompute::Always, 2 * kForwards},
                                            {engine::Recompute::ExceptLast, 2 * kForwards - kLayers},
                                            {engine::Recompute::Never, kForwards}}) {
          SCOPED_TRACE(std::to_string(ranks) + " ranks, " + schedule + ", blocks in '" + blocks + "', policy " +
                       std::to_string(static_cast<int>(policy)));
          const auto [told, count] = steps(ranks, kMicrobatches, schedule, {policy, blocks});
          expect_same(told, plain);
          EXPECT_EQ(count, gelus);
          if (HasFatalFailure()) return;
        }
    }
}

/// The oracle is plain autograd over models whose stages are of all kinds that the engine supports.
TEST(StageBlocks, OfWholeStagesEqualAutograd) {
  for (const std::string kind : {"mlp", "skip", "tied", "dropout", "batch norm", "two outputs", "integers", "frozen",
                                 "frozen early", "unused", "strided"})
    for (const auto& [ranks, schedule] : {std::pair{1, "1f1b"}, {2, "zb-h1"}, {4, "1f1b"}, {4, "zb-h2"}}) {
      SCOPED_TRACE(kind + ", " + schedule + " on " + std::to_string(ranks) + " ranks");
      const at::Tensor x = batch_of(kind, 6), target = target_of(kind, 6);
      Oracle oracle(kind, ranks, 3);
      Fleet fleet(kind, schedule::make_schedule(schedule, ranks, 3));
      oracle.seed = fleet.options.seed = 11;
      fleet.options.recompute.policy = engine::Recompute::Always;
      fleet.options.keep_strides = kind == "strided";
      expect_same(fleet.train(x, target), oracle.train(x, target));
      if (HasFatalFailure()) return;
    }
}

class OneStage : public ::testing::Test {
 protected:
  OneStage() : model(1) {
    at::set_num_threads(1);
    pipe = split::make_pipe({&model, [this](const Tensors& in) { return model.forward(in); }, {"x"}},
                            {waves({5, kWidth}, 0).requires_grad_()}, true, loss_first());
  }
  const graph::Graph& graph() const { return pipe.stages[0].graph; }
  Tensors buffers() const {
    Tensors all;
    for (const at::Tensor& buffer : model.buffers()) all.push_back(buffer.clone());
    return all;
  }
  /// Output, gradients of the input and of the parameters, buffers.
  template <class Runner>
  Tensors step(Runner&& runner, bool halves) {
    {
      const c10::NoGradGuard no_grad;
      for (const auto& item : model.named_buffers()) {
        if (item.key().ends_with("var"))
          item.value().fill_(1);
        else
          item.value().zero_();
      }
    }
    model.zero_grad();
    const Tensors x = {waves({5, kWidth}, 0).requires_grad_()};
    Tensors told, outputs, grads;
    {
      const graph::RandomTurn turn(3);
      runner.run(x, outputs);
    }
    told = {outputs[0].detach()};
    const Tensors root_grads = {waves({5, kWidth}, 4)};
    if (halves) {
      backward::WeightBackward weights;
      backward::stage_backward_input(outputs, root_grads, x, grads, weights, {.accumulate_into_inputs = false});
      for (const at::Tensor& parameter : model.parameters()) EXPECT_FALSE(parameter.grad().defined());
      backward::stage_backward_weight(weights);
    } else {
      backward::stage_backward(outputs, root_grads, x, grads);
    }
    told.push_back(grads[0]);
    for (const at::Tensor& parameter : model.parameters()) told.push_back(parameter.grad().clone());
    for (const at::Tensor& buffer : buffers()) told.push_back(buffer);
    return told;
  }

  Deep model;
  split::Pipe pipe;
};

TEST_F(OneStage, RunsEachBlockOnceMoreInOnePieceAndInHalves) {
  const graph::Program program(graph());
  const Tensors plain = step(program, false);
  for (const std::string blocks : {"", "layers"}) {
    engine::StageBlocks stage(graph(), blocks);
    for (const bool halves : {false, true}) {
      SCOPED_TRACE("blocks in '" + blocks + "'" + (halves ? ", in halves" : ""));
      Gelus gelus;
      const capture::InterposerScope scope(gelus);
      expect_same(step(stage, halves), plain, "value");
      EXPECT_EQ(gelus.count, 2 * kLayers);
    }
  }
}

TEST_F(OneStage, RunsAgainForARetainedGraphOnTheSameBuffersAndDraws) {
  engine::StageBlocks stage(graph(), "layers");
  const Tensors x = {waves({5, kWidth}, 0).requires_grad_()};
  Tensors outputs;
  {
    const graph::RandomTurn turn(3);
    stage.run(x, outputs);
  }
  const Tensors before = buffers();
  const auto gradient = [&](bool retain) {
    return torch::autograd::grad({outputs[0].square().sum()}, {x[0]}, {}, retain)[0];
  };
  const at::Tensor first = gradient(true);
  EXPECT_TRUE(at::equal(gradient(true), first));
  EXPECT_TRUE(at::equal(gradient(false), first));
  expect_same(buffers(), before, "buffer");
}

TEST_F(OneStage, HoldsFewerBytesAfterTheForward) {
  const auto bytes = std::make_shared<Bytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, bytes);
  const auto held = [&](auto&& runner) {
    const Tensors x = {waves({5, kWidth}, 0).requires_grad_()};
    const int64_t before = bytes->alive;
    Tensors outputs;
    const graph::RandomTurn turn(3);
    runner.run(x, outputs);
    return bytes->alive - before;
  };
  const int64_t generator = graph::random_state().nbytes(), value = 5 * kWidth * sizeof(float);
  const int64_t turn = generator;  // the state that the RandomTurn restores
  const graph::Program program(graph());
  const int64_t plain = held(program), stage = held(engine::StageBlocks(graph(), "")),
                layers = held(engine::StageBlocks(graph(), "layers"));
  // The earlier state of each layer's batch norm: mean, variance and a count, each in an allocation of at least 64
  // bytes.
  const int64_t statistics = 64 + 64 + 64;
  EXPECT_LE(stage, turn + value + generator + kLayers * statistics + 64);
  EXPECT_LT(stage - turn - generator, (plain - turn) / 2);
  EXPECT_LT(layers - turn - kLayers * generator, (plain - turn) / 2);
}

TEST(StageBlocks, RefuseWhatIsNotThere) {
  const auto refusal_of = [](const engine::RecomputeOptions& options) {
    return refusal([&] { steps(1, 1, "gpipe", options); });
  };
  EXPECT_EQ(refusal_of({engine::Recompute::Always, "blocks"}),
            "rank 0: recompute: no module directly inside 'blocks' was entered; modules that hold others here: "
            "layers, layers.0, layers.1, ...");
  EXPECT_EQ(refusal([] { engine::parse_recompute("sometimes"); }),
            "--recompute: 'sometimes' is none of never, except-last, always");
}

/// A second run would not find the old content of a parameter that the stage writes in place.
TEST(StageBlocks, RefuseAWrittenParameter) {
  struct Clipping : torch::nn::Module {
    Tensors forward(const Tensors& in) {
      {
        const c10::NoGradGuard no_grad;
        weight.clamp_(-1, 1);
      }
      return {in[0] * weight};
    }
    at::Tensor weight = register_parameter("weight", waves({kWidth}, 1));
  } model;
  const split::Pipe pipe = split::make_pipe({&model, [&](const Tensors& in) { return model.forward(in); }, {"x"}},
                                            {waves({5, kWidth}, 0)}, true, loss_first());
  EXPECT_EQ(refusal([&] { engine::StageBlocks(pipe.stages[0].graph, ""); }),
            "recompute: forward writes parameter 'weight' in place; a block that is run again must find it as it "
            "was");
}

}  // namespace
}  // namespace plumbline::testing
