// Between LibTorch's tensors and the torch-free ones that files hold and that are compared.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/io/tensor_file.h"

namespace plumbline::graph {

/// A copy of the elements in row-major order. Throws Error for what files do not hold: element types other than
/// HostTensor's, sparse and meta tensors.
HostTensor to_host(const at::Tensor& tensor);

/// A copy, on the CPU.
at::Tensor from_host(const HostTensor& tensor);

}  // namespace plumbline::graph
