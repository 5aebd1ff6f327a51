// Checks a model with a skip from the first layer to the third, declared by stash and pop, against the oracle: the
// example of docs/skips.md.
#include <ATen/ops/gelu.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>

#include "conformance/hold.h"
#include "runtime/capture/pipe_modules.h"
#include "runtime/skip/skippable.h"
#include "runtime/skip/verify_skippables.h"

struct First : torch::nn::Module {
  inline static const plumbline::SkipNames skips{.stash = {"1to3"}};
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(16, 16));
  plumbline::SkipForward<> forward(at::Tensor x) {
    co_yield plumbline::stash("1to3", x);
    co_return at::gelu(plumbline::call(fc, x));
  }
};

struct Third : torch::nn::Module {
  inline static const plumbline::SkipNames skips{.pop = {"1to3"}};
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(16, 16));
  plumbline::SkipForward<> forward(at::Tensor x) {
    const at::Tensor carried = co_yield plumbline::pop("1to3");
    co_return plumbline::call(fc, x) + carried;
  }
};

struct Net : plumbline::SequenceImpl {
  Net() : SequenceImpl(plumbline::skippable<First>(), torch::nn::Linear(16, 16), plumbline::skippable<Third>()) {
    plumbline::verify_skippables(*this);
  }
};

int main() {
  at::manual_seed(0);
  return plumbline::hold<Net>({.split = {"1", "2"},
                               .inputs = {at::randn({8, 16})},
                               .target = at::randn({8, 16}),
                               .loss = {plumbline::LossKind::Mse, plumbline::Reduction::Mean}});
}
