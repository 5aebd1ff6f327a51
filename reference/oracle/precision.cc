#include "reference/oracle/precision.h"

#include <torch/nn/module.h>

#include "reference/loss.h"

namespace plumbline::reference {

void convert(torch::nn::Module& module, std::optional<Dtype> dtype) {
  if (!dtype) return;
  const c10::NoGradGuard no_grad;
  for (const auto& tensors : {module.parameters(), module.buffers()})
    for (at::Tensor tensor : tensors)
      if (tensor.is_floating_point()) tensor.set_data(tensor.to(scalar_type(*dtype)));
}

at::Tensor converted(const at::Tensor& tensor, std::optional<Dtype> dtype) {
  if (!dtype || !tensor.defined() || !tensor.is_floating_point()) return tensor;
  return tensor.to(scalar_type(*dtype));
}

}  // namespace plumbline::reference
