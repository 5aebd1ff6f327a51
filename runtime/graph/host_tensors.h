// Conversions between LibTorch's tensors and HostTensor, the torch-free tensor of files and comparisons.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/io/tensor_file.h"

namespace plumbline::graph {

/// LibTorch conjugates and negates lazily: it sets a bit of a view and leaves the memory unchanged. Returns the tensor,
/// or a copy without such a bit.
inline at::Tensor with_own_values(const at::Tensor& tensor) { return tensor.resolve_conj().resolve_neg(); }

/// Complex numbers as pairs of real ones along a new last dimension, since files hold no complex ones; any other tensor
/// as it is.
at::Tensor in_pairs(const at::Tensor& tensor);

/// Returns a copy of the elements in row-major order, from any device. Throws Error for an element type that HostTensor
/// does not have, and for sparse and meta tensors.
HostTensor to_host(const at::Tensor& tensor);

/// Returns a contiguous copy on the CPU. Throws Error for an unknown element type.
at::Tensor from_host(const HostTensor& tensor);

}  // namespace plumbline::graph
