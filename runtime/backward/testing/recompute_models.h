// Shared by the tests of recomputation: computations in blocks, and their gradients with and without it.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backward/recompute.h"
#include "runtime/backward/split/split_backward.h"
#include "runtime/backward/stage_backward.h"
#include "runtime/testing/leaf.h"

namespace plumbline::recompute_test {

using backward::Block;
using backward::recompute_in_backward;
using backward::stage_backward;
using backward::stage_backward_input;
using backward::stage_backward_weight;
using backward::WeightBackward;
using testing::leaf;

using Tensors = std::vector<at::Tensor>;

/// One computation, for plain autograd and for blocks.
struct Model {
  /// Draws only from its arguments; makes its inputs, parameters and outputs anew each time.
  Tensors inputs, parameters;
  std::function<Tensors(const Model&, bool recompute)> forward;
};

enum class Backward { Full, Halves };

struct RecomputeGradients {
  Tensors outputs, of_inputs, of_parameters;
};

inline Tensors wave_like(const Tensors& outputs) {
  Tensors grads;
  for (const at::Tensor& output : outputs)
    grads.push_back(
        output.requires_grad()
            ? at::arange(output.numel(), at::kDouble).mul(0.7).sin().to(output.scalar_type()).view_as(output)
            : at::Tensor());
  return grads;
}

inline void input_half(const Tensors& outputs, const Tensors& inputs, Tensors& input_grads, WeightBackward& weights) {
  stage_backward_input(outputs, wave_like(outputs), inputs, input_grads, weights, {.accumulate_into_inputs = false});
}

inline RecomputeGradients run(const Model& model, bool recompute, Backward backward) {
  for (const at::Tensor& parameter : model.parameters) parameter.mutable_grad() = at::Tensor();
  RecomputeGradients made;
  made.outputs = model.forward(model, recompute);
  if (backward == Backward::Full) {
    stage_backward(made.outputs, wave_like(made.outputs), model.inputs, made.of_inputs);
  } else {
    WeightBackward weights;
    input_half(made.outputs, model.inputs, made.of_inputs, weights);
    for (const at::Tensor& parameter : model.parameters) EXPECT_FALSE(parameter.grad().defined());
    stage_backward_weight(weights);
  }
  for (const at::Tensor& parameter : model.parameters)
    made.of_parameters.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
  return made;
}

inline void expect_same(const Tensors& ours, const Tensors& theirs, const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(ours[i].defined(), theirs[i].defined()) << what << " " << i;
    EXPECT_TRUE(!ours[i].defined() || at::equal(ours[i], theirs[i])) << what << " " << i;
  }
}

/// The oracle is plain autograd in one piece.
inline void expect_bits_of_autograd(const Model& model) {
  const RecomputeGradients plain = run(model, false, Backward::Full);
  for (const Backward backward : {Backward::Full, Backward::Halves}) {
    SCOPED_TRACE(backward == Backward::Full ? "in one piece" : "in halves");
    const RecomputeGradients again = run(model, true, backward);
    expect_same(again.outputs, plain.outputs, "output");
    expect_same(again.of_inputs, plain.of_inputs, "gradient of input");
    expect_same(again.of_parameters, plain.of_parameters, "gradient of parameter");
  }
}

inline Tensors block(bool recompute, Block function, const Tensors& inputs, const Tensors& parameters) {
  Tensors outputs;
  if (recompute) {
    recompute_in_backward(std::move(function), inputs, parameters, outputs);
  } else {
    Tensors values = inputs;
    values.insert(values.end(), parameters.begin(), parameters.end());
    function(values, outputs);
  }
  return outputs;
}

/// x, weight, bias, gain, shift: a layer as in a transformer, its input used twice.
inline void layer(std::span<const at::Tensor> v, Tensors& outputs) {
  const at::Tensor h = at::layer_norm(v[0], {v[0].size(-1)}, v[3], v[4]);
  outputs = {v[0] + at::gelu(at::linear(h, v[1], v[2]))};
}

inline Tensors layer_parameters(int64_t width, at::ScalarType dtype = at::kFloat) {
  return {leaf({width, width}, dtype), leaf({width}, dtype), leaf({width}, dtype), leaf({width}, dtype)};
}

class Recomputation : public ::testing::Test {
 protected:
  Recomputation() {
    at::set_num_threads(1);
    at::manual_seed(7);
  }
};

inline Model two_layers(at::ScalarType dtype, bool input_needs_gradient = true) {
  Model model;
  model.inputs = {leaf({3, 5, 8}, dtype).detach().requires_grad_(input_needs_gradient)};
  model.parameters = layer_parameters(8, dtype);
  for (const at::Tensor& parameter : layer_parameters(8, dtype)) model.parameters.push_back(parameter);
  model.forward = [](const Model& m, bool recompute) {
    const Tensors p = m.parameters;
    const Tensors h = block(recompute, layer, m.inputs, {p.begin(), p.begin() + 4});
    return block(recompute, layer, h, {p.begin() + 4, p.end()});
  };
  return model;
}

}  // namespace plumbline::recompute_test
