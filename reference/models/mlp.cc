// Chains of eight equal layers: mlp, mlp-dropout, mlp-frozen, loss-inside, and the exact twins.

#include <ATen/ops/mse_loss.h>

#include "reference/models/families.h"
#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"

namespace plumbline::models {
namespace mlp_models {
namespace {

constexpr int layer_count = 8;
constexpr int64_t real_width = 32, exact_width = 8;

}  // namespace

/// x [rows, width] -> [rows, width].
class Mlp : public torch::nn::Module {
 public:
  Mlp(int64_t width, Activation activation, double dropout = 0.0)
      : layers_(register_module("layers", std::make_shared<ChildList<Layer>>())) {
    for (int i = 0; i < layer_count; ++i) layers_->add(width, width, activation, dropout);
  }
  at::Tensor forward(const at::Tensor& x) { return layers_->in_turn(x); }

 private:
  std::shared_ptr<ChildList<Layer>> layers_;
};

namespace {

Model chain(const std::shared_ptr<Mlp>& mlp) {
  return listed_model(mlp, "x", "layers", layer_count, {"fc", split::SplitPoint::Where::End});
}

Model real_chain(reference::Dtype dtype, uint64_t seed, double dropout) {
  const auto mlp = std::make_shared<Mlp>(real_width, Activation::Gelu, dropout);
  set_real_parameters(*mlp, dtype, seed);
  return chain(mlp);
}

Model exact_chain(reference::Dtype dtype, uint64_t seed, Activation activation, const ExactParameters& exact) {
  const auto mlp = std::make_shared<Mlp>(exact_width, activation);
  set_exact_parameters(*mlp, dtype, seed, exact);
  return chain(mlp);
}

/// Freezes the whole first layer, so that with 8 stages the first stage has no trainable parameter and no gradient
/// flows back to it; layers 4 and 5, which with 4 stages are the whole third stage: gradients must pass through it; and
/// one single bias.
Model freeze(const Model& model) {
  for (const auto& parameter : model.module->named_parameters())
    for (const char* frozen : {"layers.0.", "layers.4.", "layers.5.", "layers.6.fc.bias"})
      if (parameter.key().starts_with(frozen)) parameter.value().set_requires_grad(false);
  return model;
}

/// The model computes the loss: the target is an input, and the output is a mean.
Model loss_inside(reference::Dtype dtype, uint64_t seed) {
  const auto mlp = std::make_shared<Mlp>(real_width, Activation::Gelu);
  set_real_parameters(*mlp, dtype, seed);
  Model model = chain(mlp);
  model.forward = [mlp](const std::vector<at::Tensor>& inputs) {
    return std::vector{at::mse_loss(mlp->forward(inputs[0]), inputs[1])};
  };
  model.input_names = {"x", "target"};
  model.input_chunks = {microbatch::ChunkSpec{}, microbatch::ChunkSpec{}};
  return model;
}

Batch real_batch(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  return {.inputs = {real_data({rows, real_width}, dtype, seed, step, "x")},
          .targets = real_data({rows, real_width}, dtype, seed, step, "target")};
}

/// In bf16 a row's sum of |outputs| is at most 8 inputs of 1 and 8 biases of 2: eight rows stay below 2^8. Inputs are
/// odd, weights permute and biases are even, so no activation is ever zero.
Model exact_mlp(reference::Dtype dtype, uint64_t seed) {
  const ExactParameters narrow = {.fans = {1}, .bias_hi = 2, .biased = 1};
  return exact_chain(dtype, seed, Activation::Abs,
                     dtype == reference::Dtype::BF16 || dtype == reference::Dtype::F16 ? narrow : ExactParameters{});
}

Batch exact_batch(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  const int64_t max = dtype == reference::Dtype::BF16 || dtype == reference::Dtype::F16 ? 1 : 3;
  return {.inputs = {exact_data({rows, exact_width}, max, dtype, seed, step, "x")},
          .targets = exact_data({rows, exact_width}, max, dtype, seed, step, "target")};
}

Batch loss_inside_batch(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  const Batch batch = real_batch(dtype, rows, seed, step);
  return {.inputs = {batch.inputs[0], batch.targets}, .targets = {}};
}

}  // namespace

}  // namespace mlp_models

std::vector<Family> mlp_families() {
  using namespace mlp_models;
  // With relu, biases are positive and few weights negative, so that most outputs are nonzero.
  const ExactParameters relu = {.negative_one_in = 8, .bias_lo = 1, .bias_hi = 3};
  return {
      {"mlp", [](reference::Dtype dtype, uint64_t seed) { return real_chain(dtype, seed, 0.0); }, real_batch},
      {"mlp-dropout", [](reference::Dtype dtype, uint64_t seed) { return real_chain(dtype, seed, 0.25); }, real_batch},
      {"mlp-frozen", [](reference::Dtype dtype, uint64_t seed) { return freeze(real_chain(dtype, seed, 0.0)); },
       real_batch},
      {"loss-inside", loss_inside, loss_inside_batch},
      {"exact-mlp", exact_mlp, exact_batch},
      {"exact-frozen",
       [](reference::Dtype dtype, uint64_t seed) { return freeze(exact_chain(dtype, seed, Activation::Abs, {})); },
       exact_batch},
      {"exact-relu",
       [relu](reference::Dtype dtype, uint64_t seed) { return exact_chain(dtype, seed, Activation::Relu, relu); },
       exact_batch},
  };
}

}  // namespace plumbline::models
