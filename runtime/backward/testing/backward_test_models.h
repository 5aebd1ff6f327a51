// Shared by tests of the split backward: small stages with every feature of an autograd graph, and the two ways to run
// their backward: plain autograd on one copy (the oracle), I and W on another.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backward/split/split_backward.h"

namespace plumbline::backward_test {

using Tensors = std::vector<at::Tensor>;
using HookCounts = std::map<std::string, int>;

/// A stage: built twice from one seed it gives two equal, independent copies.
struct Stage {
  Tensors params;
  std::function<Tensors()> inputs;  ///< of one micro-batch, drawn from the default generator
  std::function<Tensors(const Tensors& inputs)> forward;
  std::shared_ptr<HookCounts> hooks = std::make_shared<HookCounts>();  ///< how often each user hook ran
  std::shared_ptr<Tensors> retained = std::make_shared<Tensors>();     ///< intermediates that keep their gradient
};
using BuildStage = std::function<Stage(at::ScalarType)>;

/// Draws the leaves of a stage.
struct Leaves {
  at::ScalarType dtype;
  Tensors params = {};

  at::Tensor param(at::IntArrayRef sizes, double scale = 0.4) {
    params.push_back((at::randn(sizes) * scale).to(dtype).requires_grad_(true));
    return params.back();
  }
  at::Tensor gain(int64_t size) {
    params.push_back((1 + 0.2 * at::randn({size})).to(dtype).requires_grad_(true));
    return params.back();
  }
  static at::Tensor input(at::IntArrayRef sizes, at::ScalarType dtype, bool requires_grad = true) {
    return at::randn(sizes).to(dtype).requires_grad_(requires_grad);
  }
  /// One input of these sizes.
  std::function<Tensors()> one(std::vector<int64_t> sizes) const {
    return [sizes = std::move(sizes), dtype = dtype] { return Tensors{input(sizes, dtype)}; };
  }
  Stage stage(std::function<Tensors()> inputs, std::function<Tensors(const Tensors&)> forward) const {
    Stage made;
    made.params = params, made.inputs = std::move(inputs), made.forward = std::move(forward);
    return made;
  }
};

// --- users' hooks ------------------------------------------------------------------------------------------------

/// Multiplies its gradient by 3 (not a power of two: it rounds, so a second run or another place shows) and counts.
struct UserPreHook : torch::autograd::FunctionPreHook {
  std::shared_ptr<HookCounts> counts;
  std::string name;
  UserPreHook(std::shared_ptr<HookCounts> c, std::string n) : counts(std::move(c)), name(std::move(n)) {}
  Tensors operator()(const Tensors& grads) override {
    ++(*counts)[name];
    Tensors tripled;
    for (const at::Tensor& grad : grads) tripled.push_back(grad.defined() ? grad * 3 : grad);
    return tripled;
  }
};
struct UserPostHook : torch::autograd::FunctionPostHook {
  std::shared_ptr<HookCounts> counts;
  std::string name;
  UserPostHook(std::shared_ptr<HookCounts> c, std::string n) : counts(std::move(c)), name(std::move(n)) {}
  Tensors operator()(const Tensors& made, const Tensors&) override {
    ++(*counts)[name];
    Tensors tripled;
    for (const at::Tensor& grad : made) tripled.push_back(grad.defined() ? grad * 3 : grad);
    return tripled;
  }
};
struct UserAccumulatedHook : torch::autograd::PostAccumulateGradHook {
  std::shared_ptr<HookCounts> counts;
  std::string name;
  UserAccumulatedHook(std::shared_ptr<HookCounts> c, std::string n) : counts(std::move(c)), name(std::move(n)) {}
  void operator()(const at::Tensor& leaf) override {
    ++(*counts)[name];
    const at::NoGradGuard no_grad;
    leaf.mutable_grad().mul_(3);
  }
};
inline void add_tensor_hook(const at::Tensor& tensor, std::shared_ptr<HookCounts> counts, std::string name) {
  tensor.register_hook([counts = std::move(counts), name = std::move(name)](const at::Tensor& grad) {
    ++(*counts)[name];
    return grad * 3;
  });
}
inline void add_accumulated_hook(const at::Tensor& leaf, std::shared_ptr<HookCounts> counts, std::string name) {
  torch::autograd::impl::set_post_acc_grad_hooks(leaf, std::make_unique<UserAccumulatedHook>(counts, std::move(name)));
}

// --- building blocks ---------------------------------------------------------------------------------------------

/// x w and x * w[0] at once, with a single backward: a node with two outputs that does not support halves.
struct TwoOutputs : torch::autograd::Function<TwoOutputs> {
  static Tensors forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& w) {
    context->save_for_backward({x, w});
    return {x.matmul(w), x * w.select(0, 0)};
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& grads) {
    const Tensors saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &w = saved[1];
    at::Tensor of_w = x.t().matmul(grads[0]);
    of_w.select(0, 0).add_((grads[1] * x).sum(0));
    return {grads[0].matmul(w.t()) + grads[1] * w.select(0, 0), of_w};
  }
};

struct BlockParams {
  at::Tensor norm1, bias1, qkv, qkv_bias, out, out_bias, norm2, bias2, up, up_bias, down, down_bias;
};
inline BlockParams block_params(Leaves& leaves, int64_t width) {
  const double scale = 1 / std::sqrt(double(width));
  BlockParams p;
  p.norm1 = leaves.gain(width), p.bias1 = leaves.param({width});
  p.qkv = leaves.param({3 * width, width}, scale), p.qkv_bias = leaves.param({3 * width}, 0.1);
  p.out = leaves.param({width, width}, scale), p.out_bias = leaves.param({width}, 0.1);
  p.norm2 = leaves.gain(width), p.bias2 = leaves.param({width});
  p.up = leaves.param({4 * width, width}, scale), p.up_bias = leaves.param({4 * width}, 0.1);
  p.down = leaves.param({width, 4 * width}, scale / 2), p.down_bias = leaves.param({width}, 0.1);
  return p;
}
/// A pre-norm transformer block on [batch, time, width].
inline at::Tensor block(const at::Tensor& x, const BlockParams& p, int64_t heads) {
  const int64_t batch = x.size(0), time = x.size(1), width = x.size(2);
  at::Tensor h = at::layer_norm(x, {width}, p.norm1, p.bias1);
  const Tensors qkv = at::linear(h, p.qkv, p.qkv_bias).view({batch, time, 3, heads, width / heads}).unbind(2);
  h = at::scaled_dot_product_attention(qkv[0].transpose(1, 2), qkv[1].transpose(1, 2), qkv[2].transpose(1, 2));
  h = x + at::linear(h.transpose(1, 2).reshape({batch, time, width}), p.out, p.out_bias);
  const at::Tensor inner = at::layer_norm(h, {width}, p.norm2, p.bias2);
  return h + at::linear(at::gelu(at::linear(inner, p.up, p.up_bias)), p.down, p.down_bias);
}

/// `depth` linears of equal width with relu between them.
inline Stage mlp(at::ScalarType dtype, int depth = 4, int64_t batch = 6, int64_t width = 8) {
  Leaves leaves{dtype};
  for (int i = 0; i < depth; ++i) leaves.param({width, width}), leaves.param({width});
  return leaves.stage(leaves.one({batch, width}), [p = leaves.params](const Tensors& in) {
    at::Tensor h = in[0];
    for (size_t i = 0; i < p.size(); i += 2) {
      h = at::linear(h, p[i], p[i + 1]);
      if (i + 2 < p.size()) h = h.relu();
    }
    return Tensors{h};
  });
}

inline Stage transformer(at::ScalarType dtype, int64_t batch, int64_t time, int64_t width, int depth, int64_t heads) {
  Leaves leaves{dtype};
  std::vector<BlockParams> blocks;
  for (int i = 0; i < depth; ++i) blocks.push_back(block_params(leaves, width));
  return leaves.stage(leaves.one({batch, time, width}), [blocks, heads](const Tensors& in) {
    at::Tensor h = in[0];
    for (const BlockParams& p : blocks) h = block(h, p, heads);
    return Tensors{h};
  });
}

/// One weight used before, between and after two blocks.
inline Stage tied_transformer(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor tied = leaves.param({8, 8});
  const BlockParams first = block_params(leaves, 8), second = block_params(leaves, 8);
  return leaves.stage(leaves.one({2, 5, 8}), [=](const Tensors& in) {
    const at::Tensor h = at::linear(block(at::linear(in[0], tied), first, 2), tied).tanh();
    return Tensors{at::linear(block(h, second, 2), tied)};
  });
}

/// `depth` times convolution, batch norm in training, relu.
inline Stage convolutions(at::ScalarType dtype, int depth = 3) {
  Leaves leaves{dtype};
  for (int i = 0; i < depth; ++i) {
    leaves.param({4, 4, 3, 3}), leaves.param({4});
    leaves.gain(4), leaves.param({4});
  }
  return leaves.stage(leaves.one({3, 4, 6, 6}), [p = leaves.params](const Tensors& in) {
    at::Tensor h = in[0];
    for (size_t i = 0; i < p.size(); i += 4) {
      h = at::conv2d(h, p[i], p[i + 1], 1, 1);
      h = at::batch_norm(h, p[i + 2], p[i + 3], {}, {}, true, 0.1, 1e-5, false).relu();
    }
    return Tensors{h};
  });
}

// --- the two ways ------------------------------------------------------------------------------------------------

struct MicroBatch {
  Tensors inputs, outputs, root_grads;
};
/// The forward of micro-batch `m`, and gradients for its outputs: none for scalars and for outputs that need none.
inline MicroBatch forward(const Stage& stage, int m) {
  at::manual_seed(1000 + m);
  MicroBatch batch;
  batch.inputs = stage.inputs();
  stage.retained->clear();
  batch.outputs = stage.forward(batch.inputs);
  for (const at::Tensor& output : batch.outputs) {
    const bool given = output.defined() && output.requires_grad() && output.dim() > 0;
    batch.root_grads.push_back(given ? at::randn(output.sizes()).to(output.scalar_type()) : at::Tensor());
  }
  return batch;
}
inline Stage build(const BuildStage& make, at::ScalarType dtype) {
  at::manual_seed(7);
  return make(dtype);
}

struct Gradients {
  std::vector<Tensors> inputs, retained;  ///< by micro-batch
  Tensors params;
  HookCounts hooks;
};
inline Tensors grads_of(const Tensors& tensors) {
  Tensors grads;
  for (const at::Tensor& tensor : tensors) grads.push_back(tensor.defined() ? tensor.grad() : tensor);
  return grads;
}
inline Tensors copies(const Tensors& tensors) {
  Tensors made;
  for (const at::Tensor& tensor : tensors) made.push_back(tensor.defined() ? tensor.detach().clone() : tensor);
  return made;
}

/// Plain autograd.
inline void full_backward(const MicroBatch& batch, bool retain_graph = false) {
  Tensors roots, grads;
  for (size_t i = 0; i < batch.outputs.size(); ++i) {
    if (!batch.outputs[i].defined() || !batch.outputs[i].requires_grad()) continue;
    roots.push_back(batch.outputs[i]), grads.push_back(batch.root_grads[i]);
  }
  if (!roots.empty()) torch::autograd::backward(roots, grads, retain_graph);
}
inline Gradients run_full(const BuildStage& make, at::ScalarType dtype, int micro_batches = 1) {
  const Stage stage = build(make, dtype);
  Gradients made;
  for (int m = 0; m < micro_batches; ++m) {
    const MicroBatch batch = forward(stage, m);
    full_backward(batch);
    made.inputs.push_back(grads_of(batch.inputs));
    made.retained.push_back(grads_of(*stage.retained));
  }
  made.params = grads_of(stage.params), made.hooks = *stage.hooks;
  return made;
}

/// Equal bitwise, and every number finite; if one is undefined, both are.
inline ::testing::AssertionResult same(const at::Tensor& expected, const at::Tensor& got) {
  if (expected.defined() != got.defined())
    return ::testing::AssertionFailure() << (got.defined() ? "a gradient where none is due" : "a gradient is missing");
  if (!expected.defined()) return ::testing::AssertionSuccess();
  if (!at::isfinite(expected).all().item<bool>()) return ::testing::AssertionFailure() << "the oracle is not finite";
  if (expected.sizes() != got.sizes() || expected.scalar_type() != got.scalar_type())
    return ::testing::AssertionFailure() << "other sizes or another dtype";
  if (at::equal(expected, got)) return ::testing::AssertionSuccess();
  const double apart = (expected.to(at::kDouble) - got.to(at::kDouble)).abs().max().item<double>();
  return ::testing::AssertionFailure() << "differs by up to " << apart << " where the largest number is "
                                       << expected.abs().max().item<double>();
}
inline void expect_same(const Tensors& expected, const Tensors& got, const std::string& what) {
  ASSERT_EQ(expected.size(), got.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same(expected[i], got[i])) << what << ' ' << i;
}
inline void expect_same(const Gradients& expected, const Gradients& got) {
  ASSERT_EQ(expected.inputs.size(), got.inputs.size());
  for (size_t m = 0; m < expected.inputs.size(); ++m)
    expect_same(expected.inputs[m], got.inputs[m], "micro-batch " + std::to_string(m) + ", input");
  ASSERT_EQ(expected.retained.size(), got.retained.size());
  for (size_t m = 0; m < expected.retained.size(); ++m)
    expect_same(expected.retained[m], got.retained[m], "micro-batch " + std::to_string(m) + ", retained");
  expect_same(expected.params, got.params, "parameter");
  EXPECT_EQ(expected.hooks, got.hooks) << "how often each user hook ran";
}

/// I of a micro-batch; checks that no parameter's gradient changes.
inline Tensors first_half(const Stage& stage, const MicroBatch& batch, backward::WeightBackward& weights,
                          const backward::SplitBackwardOptions& options = {}) {
  const Tensors before = grads_of(stage.params), kept = copies(before);
  Tensors input_grads;
  backward::stage_backward_input(batch.outputs, batch.root_grads, batch.inputs, input_grads, weights, options);
  const Tensors after = grads_of(stage.params);
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_TRUE(after[i].is_same(before[i])) << "parameter " << i << " has another .grad after the first half";
    EXPECT_TRUE(same(kept[i], after[i])) << "parameter " << i << " after the first half";
  }
  return input_grads;
}

/// I and W of micro-batch m: I runs `ahead` micro-batches before W. Outputs are freed when W runs.
inline Gradients run_halves(const BuildStage& make, at::ScalarType dtype, int micro_batches = 1, int ahead = 0) {
  const Stage stage = build(make, dtype);
  Gradients made;
  std::vector<backward::WeightBackward> weights(micro_batches);
  std::vector<Tensors> retained;
  for (int m = 0; m < micro_batches + ahead; ++m) {
    if (m < micro_batches) {
      const MicroBatch batch = forward(stage, m);
      made.inputs.push_back(first_half(stage, batch, weights[m]));
      retained.push_back(*stage.retained);
    }
    if (m >= ahead) {
      backward::stage_backward_weight(weights[m - ahead]);
      made.retained.push_back(grads_of(retained[m - ahead]));
    }
  }
  made.params = grads_of(stage.params), made.hooks = *stage.hooks;
  return made;
}

}  // namespace plumbline::backward_test
