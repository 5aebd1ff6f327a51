// A target of a class that the model does not have: the last rank, which alone computes the loss, must end the others.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>

#include "conformance/hold.h"

struct Net : torch::nn::Module {
  torch::nn::Linear a = register_module("a", torch::nn::Linear(4, 4));
  torch::nn::Linear b = register_module("b", torch::nn::Linear(4, 3));
  at::Tensor forward(at::Tensor x) { return plumbline::call(b, plumbline::call(a, x)); }
};

int main() {
  return plumbline::hold<Net>({.split = {"b"},
                               .inputs = {at::ones({8, 4})},
                               .target = at::full({8}, 3, at::kLong),
                               .loss = {plumbline::LossKind::CrossEntropy, plumbline::Reduction::Mean},
                               .schedules = "1f1b"});
}
