// A stage's output after its send: its place in the autograd graph, without its memory.
//
// Backward begins at the gradient edge of an output and does not read its values, so the activation may be freed as
// soon as its last send is complete (PyTorch's pipelining does so since 2.15).
#pragma once

#include <ATen/core/Tensor.h>

namespace plumbline::backward {

/// Returns a tensor on the meta device with the sizes, strides, dtype and gradient edge of `output`. The result
/// replaces `output` as a root of stage_backward() and of its halves, so that `output` itself may be freed. `output`
/// must require a gradient; it may be a view, an input of the stage or a parameter.
at::Tensor released_output(const at::Tensor& output);

/// Whether `output` is a result of released_output(). As a root it needs an explicit gradient, even if it is a scalar.
bool is_released(const at::Tensor& output);

}  // namespace plumbline::backward
