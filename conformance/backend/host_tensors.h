// From LibTorch's tensors to the torch-free ones that are written to files and compared.
#pragma once

#include "conformance/tensor_file.h"
#include "reference/results.h"

namespace plumbline {

HostTensor to_host(const at::Tensor& tensor);
TensorMap to_host(const Results& results);

}  // namespace plumbline
