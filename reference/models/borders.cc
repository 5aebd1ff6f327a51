// Values at the borders of stages: views, aliases, scalars, small integers, complex numbers, None; inputs and
// parameters passed through; stages that begin with a view or an in-place operation; inputs whose first use is in a
// later stage.

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

#include <cmath>

#include "reference/models/parts/parts.h"

namespace plumbline::models {
namespace border_models {
namespace {

using Tensors = std::vector<at::Tensor>;

/// The two halves of a value and a transposed value cross borders; all are views.
Tensors views(Parts& net, const Tensors& in) {
  at::Tensor h = net.chain(0, 1, in[0]);
  const int64_t half = net.width / 2;
  const at::Tensor left = h.narrow(1, 0, half), right = h.narrow(1, half, half);
  h = at::add(net.chain(2, 3, h), at::cat({right, left}, 1));
  h = net.chain(4, 5, h);
  const at::Tensor turned = h.t();
  return {net.chain(7, 7, at::add(net.chain(6, 6, h), turned.t()))};
}

/// A value and its alias go to different stages.
Tensors aliases(Parts& net, const Tensors& in) {
  const at::Tensor h = net.chain(0, 1, in[0]);
  const at::Tensor alias = h.view_as(h);
  const at::Tensor late = at::add(net.chain(2, 4, h), alias);
  return {at::add(net.chain(5, 7, late), alias)};
}

/// Returns the result, the input, a view of an early value, a parameter of an early stage, and the result again.
Tensors passed_through(Parts& net, const Tensors& in) {
  const at::Tensor early = net.chain(0, 1, in[0]);
  const at::Tensor result = net.chain(2, 7, early);
  return {result, in[0], early.t(), net.part(3)->fc().weight(), result};
}

/// The last stage returns one of its parameters in addition to the result.
Tensors parameter_output(Parts& net, const Tensors& in) { return {net.chain(0, 7, in[0]), net.part(7)->fc().weight()}; }

/// An early value is read by three later stages of four.
Tensors wide(Parts& net, const Tensors& in) {
  const at::Tensor early = net.chain(0, 1, in[0]);
  const at::Tensor h = net.chain(5, 6, at::add(net.chain(2, 4, early), early));
  return {net.chain(7, 7, at::add(h, early))};
}

/// Sums of views: of two parameters, and of a value of an early stage and a parameter. Autograd uses one memory for the
/// gradients of both.
Tensors summed_views(Parts& net, const Tensors& in) {
  const auto row = [&](const char* extra) { return net.extra(extra)->fc().bias().view({1, net.width}); };
  const at::Tensor early = at::mul(row("early"), row("early"));
  at::Tensor h = net.chain(0, 1, in[0]);
  h = net.chain(5, 5, at::add(net.chain(2, 4, h), at::add(row("left"), row("right"))));
  return {net.chain(7, 7, at::add(net.chain(6, 6, h), at::add(early.view({1, net.width}), row("late"))))};
}

/// A scalar of an early stage is added near the end, and is also an output.
Tensors scalar(Parts& net, const Tensors& in) {
  const at::Tensor h = net.chain(0, 1, in[0]);
  const at::Tensor sum = at::sum(net.extra("gain")->fc().bias());
  return {net.chain(6, 7, at::add(net.chain(2, 5, h), sum)), sum};
}

/// Multiplied halfway by a parameter without dimensions.
Tensors tempered(Parts& net, const Tensors& in) {
  const at::Tensor temperature = net.named_parameters(/*recurse=*/false)["temperature"];
  return {net.chain(4, 7, at::mul(net.chain(0, 3, in[0]), temperature))};
}

/// Rows of numbers as half as many complex ones.
at::Tensor paired(const at::Tensor& x) { return at::view_as_complex(x.reshape({x.size(0), x.size(1) / 2, 2})); }

/// And back.
at::Tensor parts_of(const at::Tensor& z) { return at::view_as_real(z).reshape({z.size(0), 2 * z.size(1)}); }

/// Complex numbers, which are no views, cross borders. A product of them subtracts, of which exactness has no proof.
Tensors complex_numbers(Parts& net, const Tensors& in) {
  const auto twice = [](const at::Tensor& x) { return at::add(paired(x), paired(x)); };
  at::Tensor h = net.chain(0, 1, in[0]);
  const at::Tensor early = twice(h);
  h = net.chain(2, 3, h);
  const at::Tensor next = twice(h);
  h = net.chain(4, 4, h);
  h = net.chain(5, 5, at::add(h, parts_of(next)));
  const at::Tensor met = net.is_exact() ? at::add(early, paired(h)) : at::mul(early, paired(h));
  return {net.chain(6, 7, at::add(h, parts_of(met)))};
}

/// LibTorch conjugates lazily, by a mark on a view of the same memory: `mirrored`, and the gradient of `next`, are such
/// views.
Tensors conjugated(Parts& net, const Tensors& in) {
  at::Tensor h = net.chain(0, 1, in[0]);
  const at::Tensor early = paired(h), mirrored = at::conj(early);
  h = net.chain(2, 3, h);
  const at::Tensor next = paired(h);
  h = net.chain(4, 4, h);
  h = net.chain(5, 5, at::add(h, parts_of(at::add(at::conj(next), early))));
  return {net.chain(6, 7, at::add(h, parts_of(at::add(mirrored, early))))};
}

/// Booleans and 32-bit integers, made in the first stage, are used by later ones.
Tensors small_numbers(Parts& net, const Tensors& in) {
  const at::Tensor even = at::remainder(in[1], 2).eq(0), ids = in[1].to(at::kInt);
  const at::Tensor early = net.chain(0, 1, in[0]);
  at::Tensor h = net.chain(2, 4, early);
  h = net.chain(5, 5, at::add(h, at::mul(early, even.unsqueeze(1))));
  return {net.chain(6, 7, at::add(h, at::embedding(net.extra("table")->fc().weight(), ids)))};
}

Tensors late_input(Parts& net, const Tensors& in) {
  return {net.chain(6, 7, at::add(net.chain(0, 5, in[0]), at::mul(in[1], in[2])))};
}

/// A late stage writes a value that an early one made and that requires no gradient.
Tensors late_write(Parts& net, const Tensors& in) {
  at::Tensor offset = at::mul(in[1], 2);
  const at::Tensor h = net.chain(0, 5, in[0]);
  offset.add_(1);
  return {net.chain(6, 7, at::add(h, offset))};
}

/// The second output is None, the third is not.
Tensors none(Parts& net, const Tensors& in) {
  const at::Tensor h = net.chain(0, 5, in[0]);
  return {net.chain(6, 7, h), at::Tensor(), h};
}

/// One input is unused; another is used only in an output that does not contribute to the loss.
Tensors unused_inputs(Parts& net, const Tensors& in) {
  const at::Tensor h = net.chain(0, 3, in[0]);
  return {net.chain(4, 7, h), at::add(h, in[1])};
}

/// A mask of zeros and one minus infinity, made in the first stage, is expanded to all rows in the middle stage, where
/// `half`, neither parameter nor buffer, scales the masked value.
Tensors constants(Parts& net, const Tensors& in, const at::Tensor& half) {
  const at::Tensor open = at::full({net.width - 1}, 0.0), closed = at::full({1}, -INFINITY);
  const at::Tensor mask = at::cat({open, closed}, 0);
  const at::Tensor h = at::mul(net.chain(0, 4, in[0]), half);
  return {net.chain(5, 7, at::softmax(at::add(h, mask.expand({h.size(0), net.width})), 1))};
}

/// The number of rows is added at the end as a host integer, so a different number of rows needs a different program.
Tensors host_numbers(Parts& net, const Tensors& in) {
  const int64_t rows = in[0].size(0);
  return {net.chain(6, 7, at::add(net.chain(0, 5, in[0]), rows))};
}

/// Masked halfway and at the end by an input: dropout without randomness.
Tensors masked(Parts& net, const Tensors& in) {
  const at::Tensor h = at::mul(net.chain(0, 3, in[0]), in[1]);
  return {at::mul(net.chain(4, 7, h), in[1])};
}

/// The model computes the loss: the squares of the unmasked errors. The target is negated, so that no operation
/// subtracts.
Tensors loss_inside(Parts& net, const Tensors& in) {
  const at::Tensor error = at::add(net.chain(0, 7, in[0]), in[1]);
  return {at::sum(at::mul(at::mul(error, error), in[2]))};
}

/// As loss_inside(), then an operation whose backward reads its own result: the loss.
Tensors loss_read(Parts& net, const Tensors& in) { return {at::relu(loss_inside(net, in).front())}; }

std::function<void(Parts&)> opened(Opening opening) {
  return [opening](Parts& net) {
    for (int i = 1; i < kParts; ++i) net.part(i)->begin_with(opening);
  };
}

/// The last one of a list of terms: a view, whose base has more elements.
Tensors loss_view(Parts& net, const Tensors& in) {
  const at::Tensor h = net.chain(0, 7, in[0]);
  const at::Tensor terms = at::sum(h, 0);
  return {at::cat({terms, at::sum(h).view({1})}).select(0, -1)};
}

/// Part 4 expands what it is given: sums of rows.
Tensors begins_with_expand(Parts& net, const Tensors& in) {
  const at::Tensor h = net.chain(0, 3, in[0]);
  return {net.chain(4, 7, at::sum(h, 1, /*keepdim=*/true))};
}

}  // namespace

}  // namespace border_models

std::vector<Family> border_families() {
  using namespace border_models;
  using enum Content;
  const std::vector<Variant> both = {
      {.name = "views", .forward = views},
      {.name = "passed-through", .forward = passed_through},
      {.name = "small-numbers", .forward = small_numbers, .inputs = {{"x", Values}, {"ids", Ids}}, .extras = {"table"}},
      {.name = "complex", .forward = complex_numbers},
      {.name = "late-input", .forward = late_input, .inputs = {{"x", Values}, {"late", Values}, {"scale", Scale}}},
      {.name = "late-write", .forward = late_write, .inputs = {{"x", Values}, {"offset", Values}}},
      {.name = "none", .forward = none},
      {.name = "begins-with-view", .forward = plain, .prepare = opened(Opening::View)},
      {.name = "begins-in-place", .forward = plain, .prepare = opened(Opening::InPlace)},
      {.name = "begins-with-row",
       .forward = plain,
       .prepare = opened(Opening::Row),
       .exact = {.fans = {1}, .bias_hi = 2, .biased = 1}},
      {.name = "summed-views", .forward = summed_views, .extras = {"early", "left", "right", "late"}},
  };
  const std::vector<Variant> exact_only = {
      {.name = "conjugated", .forward = conjugated},
      {.name = "aliases", .forward = aliases},
      {.name = "parameter-output", .forward = parameter_output},
      {.name = "scalar", .forward = scalar, .extras = {"gain"}},
      {.name = "temperature",
       .forward = tempered,
       .prepare = [](Parts& net) { net.register_parameter("temperature", at::zeros({})); },
       .finish =
           [](Parts& net, reference::Dtype) {
             const c10::NoGradGuard no_grad;
             net.named_parameters(/*recurse=*/false)["temperature"].fill_(-2);
           }},
      {.name = "unused-inputs",
       .forward = unused_inputs,
       .inputs = {{"x", Values}, {"side", Values}, {"spare", Values}}},
      {.name = "masked", .forward = masked, .inputs = {{"x", Values}, {"mask", Mask}}},
  };
  std::vector<Family> all = families_of(both, exact_only);
  all.push_back(
      real_twin({.name = "constants", .forward = [half = at::scalar_tensor(0.5)](Parts& net, const Tensors& in) {
                   return constants(net, in, half);
                 }}));
  all.push_back(real_twin({.name = "host-numbers", .forward = host_numbers}));
  all.push_back(real_twin({.name = "wide", .forward = wide}));
  for (const auto& [name, forward] : {std::pair{"loss-inside", &loss_inside}, {"loss-read", &loss_read}})
    all.push_back(exact_twin({.name = name,
                              .forward = forward,
                              .inputs = {{"x", Values}, {"minus_target", Target}, {"mask", Mask}},
                              .has_target = false}));
  all.push_back(exact_twin({.name = "loss-view", .forward = loss_view, .has_target = false}));
  all.push_back(exact_twin({.name = "begins-turned",
                            .forward = plain,
                            .prepare = opened(Opening::Turned),
                            .exact = {.fans = {1}, .bias_hi = 2, .biased = 1}}));
  all.push_back(exact_twin({.name = "begins-with-sum",
                            .forward = plain,
                            .prepare = [](Parts& net) { net.part(4)->begin_with(Opening::Sum); },
                            .exact = {.fans = {1}, .bias_hi = 2, .biased = 1},
                            .has_target = false}));
  all.push_back(exact_twin({.name = "begins-with-expand",
                            .forward = begins_with_expand,
                            .prepare = [](Parts& net) { net.part(4)->begin_with(Opening::Expand); },
                            .exact = {.fans = {1}, .bias_hi = 2, .biased = 1},
                            .has_target = false}));
  return all;
}

}  // namespace plumbline::models
