// Values that are present in one step and None in another: an input that some batches lack, and a value that crosses
// stages and is an output in training only. The inputs and outputs of stages are the same in both; a None is not sent.

#include <ATen/ops/mul.h>

#include "reference/models/parts/parts.h"

namespace plumbline::models {
namespace presence_models {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Masked before part 4 and before the last part, if there is a mask.
Tensors optional_mask(Parts& net, const Tensors& in) {
  const at::Tensor h = capture::call(net.part(4), net.chain(0, 3, in[0]), in[1], Meeting::Factor);
  return {capture::call(net.part(7), net.chain(5, 6, h), in[1], Meeting::Factor)};
}

/// The same with the mask as the first input, so that a None precedes the values.
Tensors leading_mask(Parts& net, const Tensors& in) { return optional_mask(net, {in[1], in[0]}); }

/// Masked before part 4 by the first mask and before the last part by the second; the first batch lacks the second one,
/// the next one the first.
Tensors either_mask(Parts& net, const Tensors& in) {
  const at::Tensor h = capture::call(net.part(4), net.chain(0, 3, in[0]), in[1], Meeting::Factor);
  return {capture::call(net.part(7), net.chain(5, 6, h), in[2], Meeting::Factor)};
}

/// Twice an early value is added near the end and is the second output; evaluation omits both.
Tensors absent_value(Parts& net, const Tensors& in) {
  const at::Tensor h = net.chain(0, 1, in[0]);
  const at::Tensor early = net.is_training() ? at::mul(h, 2) : at::Tensor();
  const at::Tensor late = capture::call(net.part(6), net.chain(2, 5, h), early, Meeting::Addend);
  return {net.chain(7, 7, late), early};
}

}  // namespace

}  // namespace presence_models

std::vector<Family> presence_families() {
  using namespace presence_models;
  using enum Content;
  return families_of(
      {{.name = "optional-mask", .forward = optional_mask, .inputs = {{"x", Values}, {"mask", FirstMask}}},
       {.name = "leading-mask", .forward = leading_mask, .inputs = {{"mask", FirstMask}, {"x", Values}}},
       {.name = "either-mask",
        .forward = either_mask,
        .inputs = {{"x", Values}, {"first", FirstMask}, {"second", LaterMask}}},
       {.name = "absent-value", .forward = absent_value}},
      {{.name = "late-mask", .forward = optional_mask, .inputs = {{"x", Values}, {"mask", SecondMask}}}});
}

}  // namespace plumbline::models
