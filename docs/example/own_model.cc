// Checks a user's model against the oracle: the ten lines of the README.
#include <ATen/ops/gelu.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>

#include "conformance/hold.h"

struct Net : torch::nn::Module {
  torch::nn::Linear a = register_module("a", torch::nn::Linear(16, 16));
  torch::nn::Linear b = register_module("b", torch::nn::Linear(16, 16));
  at::Tensor forward(at::Tensor x) { return plumbline::call(b, at::gelu(plumbline::call(a, x))); }
};

int main() {
  at::manual_seed(0);
  return plumbline::hold<Net>({.split = {"b"},
                               .inputs = {at::randn({8, 16})},
                               .target = at::randn({8, 16}),
                               .loss = {plumbline::LossKind::Mse, plumbline::Reduction::Mean}});
}
