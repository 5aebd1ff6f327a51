#include "runtime/backward/released_output.h"

#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/function.h>

#include "runtime/backward/requires_gradient.h"
#include "runtime/error.h"

namespace plumbline::backward {

at::Tensor released_output(const at::Tensor& output) {
  PLUMBLINE_CHECK(requires_gradient(output), "an output without a gradient has no place to keep");
  at::Tensor place =
      at::empty_strided(output.sizes(), output.strides(), output.options().device(at::kMeta).requires_grad(false));
  torch::autograd::impl::set_gradient_edge(place, torch::autograd::impl::gradient_edge(output));
  return place;
}

bool is_released(const at::Tensor& output) {
  if (!output.is_meta() || output.is_leaf()) return false;
  // A tensor made on the meta device has a node that expects its gradient there.
  const torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(output);
  return edge.function->input_metadata(edge.input_nr).device() != output.device();
}

}  // namespace plumbline::backward
