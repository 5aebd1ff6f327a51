// Losses of early stages, gradients that overflow in one stage, and gradients of zeros: for the chapters about scaling
// and the optimizer.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include "reference/models/parts/parts.h"

namespace plumbline::models {
namespace auxiliary_models {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Two early values are summed: the second and third output are losses of the stages that make them.
Tensors auxiliary(Parts& net, const Tensors& in) {
  const at::Tensor first = net.chain(0, 1, in[0]), early = at::sum(first);
  const at::Tensor second = net.chain(2, 4, first), later = at::sum(second);
  return {net.chain(5, 7, second), early, later};
}

/// A branch of an early value that only a loss of a later stage reads.
Tensors branch(Parts& net, const Tensors& in) {
  const at::Tensor first = net.chain(0, 1, in[0]), side = at::mul(first, 2);
  const at::Tensor second = net.chain(2, 4, first), loss = at::sum(capture::call(net.extra("auxiliary"), side));
  return {net.chain(5, 7, second), loss};
}

/// The square of the mean over the rows, summed, as in the balancing losses of mixtures of experts: not a sum over
/// rows.
at::Tensor imbalance(const at::Tensor& h) {
  const at::Tensor load = at::mean(h, 0);
  return at::sum(at::mul(load, load));
}

Tensors balanced(Parts& net, const Tensors& in) {
  const at::Tensor first = net.chain(0, 1, in[0]), early = imbalance(first);
  const at::Tensor second = net.chain(2, 4, first), later = imbalance(second);
  return {net.chain(5, 7, second), early, later};
}

/// Adds the product of a bias, which is 0, and an input: the gradient of the bias overflows where that input is huge.
Tensors spiked(Parts& net, const Tensors& in) {
  return {net.chain(4, 7, at::add(net.chain(0, 3, in[0]), at::mul(in[1], net.extra("gain")->fc().bias())))};
}

/// The bias of `idle` is multiplied by 0: it has a gradient of zeros, and the weight of `idle` has none.
Tensors idle(Parts& net, const Tensors& in) {
  return {net.chain(4, 7, at::add(net.chain(0, 3, in[0]), at::mul(net.extra("idle")->fc().bias(), 0)))};
}

}  // namespace

}  // namespace auxiliary_models

std::vector<Family> auxiliary_families() {
  using namespace auxiliary_models;
  using enum Content;
  std::vector<Family> all =
      families_of({{.name = "auxiliary", .forward = auxiliary, .auxiliary_losses = 2},
                   {.name = "branch", .forward = branch, .extras = {"auxiliary"}, .auxiliary_losses = 1}},
                  {});
  all.push_back(real_twin({.name = "balanced", .forward = balanced, .auxiliary_losses = 2}));
  all.push_back(real_twin({.name = "spiked",
                           .forward = spiked,
                           .inputs = {{"x", Values}, {"spike", SecondSpike}},
                           .extras = {"gain"},
                           .finish = [](Parts& net, reference::Dtype) {
                             const c10::NoGradGuard no_grad;
                             net.extra("gain")->fc().bias().zero_();
                           }}));
  all.push_back(real_twin({.name = "idle", .forward = idle, .extras = {"idle"}}));
  return all;
}

}  // namespace plumbline::models
