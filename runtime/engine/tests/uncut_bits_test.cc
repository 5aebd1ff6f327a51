// With values that hop from user to user, transmitted shared parameters, kept strides and a carried random state, a
// split model has the bits of the uncut model: plain autograd, one micro-batch after the other.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/nn/module.h>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::testing {
namespace {

constexpr int kStages = 4, kUncutMicrobatches = 3;
constexpr int64_t kFeatures = 24;

at::Tensor weights(int i) { return (at::randn({kFeatures, kFeatures}) * 0.3 + 0.01 * i).requires_grad_(); }

/// A weight that three stages use, two of them twice; a skip that every stage uses, three of them twice; dropout in
/// three stages; values that cross transposed, expanded and sliced; stages that begin by changing a received value.
struct Winding : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor h = at::dropout(x.matmul(w[0]).matmul(tied).sigmoid().matmul(tied), 0.3, true);
    const at::Tensor skip = h.matmul(w[1]);
    const at::Tensor turned = h.t(), repeated = h.sum(0, true).expand({5, kFeatures}), slice = h.narrow(1, 3, 7);
    capture::pipe_split();
    h = turned.t() * skip + skip.sin().matmul(w[2]);
    at::Tensor mixed = turned.sum(1) * repeated;
    capture::pipe_split();
    mixed.mul_(0.5);
    h = at::dropout(h.matmul(tied).tanh().matmul(tied), 0.4, true) * skip + skip.cos() + mixed;
    h = h + at::constant_pad_nd(slice, {3, kFeatures - 10});
    capture::pipe_split();
    h.add_(skip * 0.1);
    return at::dropout((h * skip).matmul(tied), 0.2, true) + repeated.mean() * skip;
  }
  std::vector<at::Tensor> w = {register_parameter("w0", weights(0)), register_parameter("w1", weights(1)),
                               register_parameter("w2", weights(2))};
  at::Tensor tied = register_parameter("tied", weights(3));
};

using Bits = std::map<std::string, at::Tensor>;

at::Tensor mean_square(const std::vector<at::Tensor>& outputs, const at::Tensor&) { return outputs[0].square().mean(); }

Bits uncut(const at::Tensor& x, uint64_t seed) {
  at::manual_seed(1);
  Winding model;
  Bits bits;
  for (int m = 0; m < kUncutMicrobatches; ++m) {
    at::manual_seed(seed + m);
    const at::Tensor output = model.forward(x.narrow(0, 5 * m, 5));
    mean_square({output}, {}).backward();
    bits["output " + std::to_string(m)] = output.detach();
  }
  for (const auto& item : model.named_parameters()) bits[item.key()] = item.value().grad() / kUncutMicrobatches;
  return bits;
}

struct Manner {
  split::Route route = split::Route::Chain;
  split::MultiUse multi_use = split::MultiUse::Transmit;
  bool keep_strides = true, carry_random_state = true;
};

Bits split_up(const at::Tensor& x, uint64_t seed, const std::string& schedule, const Manner& manner) {
  split::SplitOptions split;
  split.loss_outputs = std::vector<int>{0};
  split.route = manner.route;
  split.multi_use = manner.multi_use;
  split.carry_random_state = manner.carry_random_state;
  engine::EngineOptions options;
  options.input_names = {"x"};
  options.input_chunks = {microbatch::ChunkSpec{}};
  options.loss = &mean_square;
  options.seed = seed;
  options.seed_by_microbatch = true;
  options.keep_strides = manner.keep_strides;
  options.timeout = std::chrono::seconds(30);
  Bits bits;
  std::mutex mutex;
  std::vector<std::shared_ptr<Winding>> models;
  for (int r = 0; r < kStages; ++r) {
    at::manual_seed(1);
    models.push_back(std::make_shared<Winding>());
  }
  with_ranks(kStages, [&](transport::Transport& transport) {
    at::set_num_threads(1);
    const auto& model = models[transport.rank()];
    const engine::PipeSource source = [&](bool training, const std::vector<at::Tensor>& inputs) {
      return split::make_pipe(
          {model.get(), [&](const std::vector<at::Tensor>& in) { return std::vector{model->forward(in[0])}; }, {"x"}},
          inputs, training, split);
    };
    engine::Engine engine(transport, schedule::make_schedule(schedule, kStages, kUncutMicrobatches), source, options);
    const engine::StepResult step = engine.train({x}, {});
    const std::lock_guard<std::mutex> lock(mutex);
    for (size_t m = 0; m < step.outputs.size(); ++m) bits["output " + std::to_string(m)] = step.outputs[m][0];
    for (const auto& [stage, state] : engine.states())
      for (const auto& [name, tensor] : state.parameters) bits[name] = tensor.grad().clone();
  });
  return bits;
}

std::string differing(const Bits& a, const Bits& b) {
  std::string names;
  for (const auto& [name, tensor] : a)
    if (!b.contains(name) || !at::equal(tensor, b.at(name))) names += name + " ";
  return names;
}

TEST(UncutBits, AreThoseOfTheModelThatWasNeverCut) {
  at::set_num_threads(1);
  for (const uint64_t seed : {3, 4, 5}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    at::manual_seed(seed);
    const at::Tensor x = at::randn({5 * kUncutMicrobatches, kFeatures});
    const Bits expected = uncut(x, seed);
    ASSERT_EQ(expected.size(), 4u + kUncutMicrobatches);
    for (const std::string schedule : {"gpipe", "1f1b"}) {
      EXPECT_EQ(differing(expected, split_up(x, seed, schedule, {})), "") << schedule;
      EXPECT_EQ(differing(expected, split_up(x, seed, schedule, {.route = split::Route::Neighbours})), "") << schedule;
    }
  }
}

/// Every one of these options is needed: without it some bits change.
TEST(UncutBits, NeedEveryPartOfTheManner) {
  at::set_num_threads(1);
  at::manual_seed(3);
  const at::Tensor x = at::randn({5 * kUncutMicrobatches, kFeatures});
  const Bits expected = uncut(x, 3);
  EXPECT_NE(differing(expected, split_up(x, 3, "gpipe", {.route = split::Route::Direct})), "");
  EXPECT_NE(differing(expected, split_up(x, 3, "gpipe", {.multi_use = split::MultiUse::Replicate})), "");
  EXPECT_NE(differing(expected, split_up(x, 3, "gpipe", {.carry_random_state = false})), "");
}

}  // namespace
}  // namespace plumbline::testing
