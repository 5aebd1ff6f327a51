// A stage's output after it was sent: its place in the autograd graph, without its memory.
//
// Backward begins at the gradient edge of an output and does not read its values, so the activation may be freed as
// soon as its last send is complete (PyTorch's pipelining does so since 2.15).
#pragma once

#include <ATen/core/Tensor.h>

namespace plumbline::backward {

/// A tensor on the meta device with the sizes, strides and dtype of `output` and its gradient edge: a root for
/// stage_backward() and its halves after `output` itself is freed. `output` must require a gradient; it may be a view,
/// an input of the stage or a parameter.
at::Tensor released_output(const at::Tensor& output);

/// True for a result of released_output(): its gradient must be given, there is no default.
bool is_released(const at::Tensor& output);

}  // namespace plumbline::backward
