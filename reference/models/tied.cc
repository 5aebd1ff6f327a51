// exact-tied: the exact surrogate of a language model whose embedding and head are one parameter.

#include <ATen/ops/linear.h>

#include "reference/models/families.h"
#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"
#include "runtime/capture/call.h"

namespace plumbline::models {
namespace tied_models {
namespace {

constexpr int layer_count = 8;
constexpr int64_t vocabulary = 16, width = 8, length = 4;

}  // namespace

/// tokens [rows, 4] -> logits [rows, 4, 16]. The first and the last stage use `tok.weight`.
class Tied : public torch::nn::Module {
 public:
  Tied()
      : tok_(register_module("tok", std::make_shared<Embedding>(vocabulary, width))),
        layers_(register_module("layers", std::make_shared<ChildList<Layer>>())) {
    for (int i = 0; i < layer_count; ++i) layers_->add(width, width, Activation::Abs);
  }
  at::Tensor forward(const at::Tensor& tokens) {
    return at::linear(layers_->in_turn(capture::call(tok_, tokens)), tok_->weight());
  }

 private:
  std::shared_ptr<Embedding> tok_;
  std::shared_ptr<ChildList<Layer>> layers_;
};

namespace {

Model model(reference::Dtype dtype, uint64_t seed) {
  const auto root = std::make_shared<Tied>();
  // Only permutations: with wider weights the sum of a thousand squared logits would not fit. The table is odd and the
  // biases are even, so no activation is ever zero.
  set_exact_parameters(*root, dtype, seed, {.fans = {1}, .bias_hi = 2, .biased = 2});
  return listed_model(root, "tokens", "layers", layer_count, {"fc", split::SplitPoint::Where::End});
}

Batch batch(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  return {.inputs = {index_data({rows, length}, vocabulary, seed, step, "tokens")},
          .targets = exact_data({rows, length, vocabulary}, 3, dtype, seed, step, "target")};
}

}  // namespace

}  // namespace tied_models

std::vector<Family> tied_families() {
  using namespace tied_models;
  return {{"exact-tied", model, batch}};
}

}  // namespace plumbline::models
