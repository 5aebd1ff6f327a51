// Gradients that share memory or have unusual strides when they cross, weights that are computed from parameters, and a
// buffer that the forward both writes and reads.

#include <ATen/ops/add.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include "reference/models/parts/parts.h"

namespace plumbline::models {
namespace crossing_models {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Every later part reads the first value.
Tensors read_by_all(Parts& net, const Tensors& in) {
  const at::Tensor early = net.chain(0, 0, in[0]);
  at::Tensor h = early;
  for (int i = 1; i < kParts; ++i) h = capture::call(net.part(i), h, early, Meeting::Addend);
  return {h};
}

/// Two early values are added to a third: autograd gives all three the same tensor as gradient. One of them has an
/// earlier reader too, so its gradient is a sum.
Tensors twin_skips(Parts& net, const Tensors& in) {
  const at::Tensor first = net.chain(0, 0, in[0]), second = net.chain(1, 1, first);
  at::Tensor h = capture::call(net.part(3), net.chain(2, 2, second), first, Meeting::Addend);
  h = net.chain(4, 6, h);
  return {net.chain(7, 7, at::add(at::add(h, first), second))};
}

/// Two later stages read a value transposed, another its sums over rows: the gradients that cross are transposed, or
/// have strides of 0. (One statement for each operation: C++ does not order the arguments of a call, and an operation
/// belongs to the stage that has begun when it is called.)
Tensors strided_gradients(Parts& net, const Tensors& in) {
  const at::Tensor early = net.chain(0, 0, in[0]);
  at::Tensor h = net.chain(1, 3, early);
  h = at::add(h, turned(net.extra("second")->fc(), early));
  h = net.chain(4, 5, h);
  h = at::add(h, at::sum(early, 1, /*keepdim=*/true));
  h = net.chain(6, 6, h);
  h = at::add(h, turned(net.extra("fourth")->fc(), early));
  return {net.chain(7, 7, h)};
}

/// Weights are (u + v) * v: both parameters have parts of their backward in common.
Tensors composed_weights(Parts& net, const Tensors& in) {
  const auto layer = [&](const std::string& name, const at::Tensor& h) {
    const at::Tensor u = net.extra("u" + name)->fc().weight(), v = net.extra("v" + name)->fc().weight();
    return at::linear(h, at::mul(at::add(u, v), v));
  };
  at::Tensor h = layer("0", net.chain(0, 2, in[0]));
  return {net.chain(6, 7, layer("1", net.chain(3, 5, h)))};
}

/// Weights are a c^T + b c^T: the paths of the first two parameters meet in the third, which is registered last.
Tensors common_factor(Parts& net, const Tensors& in) {
  const auto layer = [&](const std::string& name, const at::Tensor& h) {
    const at::Tensor a = net.extra("a" + name)->fc().weight(), b = net.extra("b" + name)->fc().weight(),
                     c = net.extra("c" + name)->fc().weight();
    const at::Tensor left = at::linear(a, c), right = at::linear(b, c);
    return at::linear(h, at::add(left, right));
  };
  at::Tensor h = layer("0", net.chain(0, 2, in[0]));
  return {net.chain(6, 7, layer("1", net.chain(3, 5, h)))};
}

/// Two layers side by side, whose weights are a + c and b + c: the third parameter meets the path of the input twice,
/// each time beside another one, and is registered last.
Tensors shared_summand(Parts& net, const Tensors& in) {
  const auto layer = [&](const std::string& name, const at::Tensor& h) {
    const at::Tensor a = net.extra("a" + name)->fc().weight(), b = net.extra("b" + name)->fc().weight(),
                     c = net.extra("c" + name)->fc().weight();
    const at::Tensor left = at::linear(h, at::add(a, c)), right = at::linear(h, at::add(b, c));
    return at::add(left, right);
  };
  at::Tensor h = layer("0", net.chain(0, 2, in[0]));
  return {net.chain(6, 7, layer("1", net.chain(3, 5, h)))};
}

/// Weights are u + v: both parameters have the same gradient, in autograd the same tensor.
Tensors summed_weights(Parts& net, const Tensors& in) {
  const auto layer = [&](const std::string& name, const at::Tensor& h) {
    return at::linear(h, at::add(net.extra("u" + name)->fc().weight(), net.extra("v" + name)->fc().weight()));
  };
  at::Tensor h = layer("0", net.chain(0, 2, in[0]));
  return {net.chain(6, 7, layer("1", net.chain(3, 5, h)))};
}

/// A running sum of the values of a part is written and then added, in training; an evaluation adds it only. Of two and
/// of four stages, the one that adds it computes part 3 from the result: a wrong sum in a recomputation changes
/// gradients.
Tensors reads_buffer(Parts& net, const Tensors& in) {
  const at::Tensor h = net.chain(0, 2, in[0]);
  at::Tensor seen = net.named_buffers()["seen"];
  if (net.is_training()) seen.add_(at::sum(h.detach(), 0));
  return {net.chain(3, 7, at::add(h, at::mul(seen, 0.125)))};
}

/// As reads_buffer, but an evaluation writes as well, and a later part adds the sum: by then a stage may have begun the
/// next micro-batch.
Tensors late_buffer(Parts& net, const Tensors& in) {
  at::Tensor h = net.chain(0, 2, in[0]);
  at::Tensor seen = net.named_buffers()["seen"];
  seen.add_(at::sum(h.detach(), 0));
  h = net.chain(3, 6, h);
  return {net.chain(7, 7, at::add(h, at::mul(seen, 0.125)))};
}

}  // namespace

}  // namespace crossing_models

std::vector<Family> crossing_families() {
  using namespace crossing_models;
  const ExactParameters narrow{.fans = {1}, .bias_hi = 2, .biased = 1};
  const std::vector<std::string> two = {"u0", "v0", "u1", "v1"}, three = {"a0", "b0", "c0", "a1", "b1", "c1"};
  std::vector<Family> all = families_of(
      {{.name = "strided-gradients", .forward = strided_gradients, .extras = {"second", "fourth"}, .exact = narrow},
       {.name = "composed-weights", .forward = composed_weights, .extras = two}},
      {{.name = "common-factor", .forward = common_factor, .extras = three, .exact = narrow},
       {.name = "shared-summand", .forward = shared_summand, .extras = three, .exact = narrow},
       {.name = "summed-weights", .forward = summed_weights, .extras = two, .exact = narrow},
       {.name = "read-by-all", .forward = read_by_all, .exact = narrow},
       {.name = "twin-skips", .forward = twin_skips, .exact = narrow}});
  const auto with_sum = [](Parts& net) { net.register_buffer("seen", at::zeros({net.width})); };
  all.push_back(real_twin({.name = "reads-buffer", .forward = reads_buffer, .prepare = with_sum}));
  all.push_back(real_twin({.name = "late-buffer", .forward = late_buffer, .prepare = with_sum}));
  return all;
}

}  // namespace plumbline::models
