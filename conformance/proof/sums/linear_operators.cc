#include "conformance/proof/sums/linear_operators.h"

namespace plumbline::proof {

const std::map<std::string_view, Linear>& linear_operators() {
  static const Linear first{.operands = {0}}, product{.operands = {0, 1}}, jointly{.jointly = true};
  static const std::map<std::string_view, Linear> all = {
      {"elements", first},
      {"broadcast", first},
      // Products.
      {"aten::mm", product},
      {"aten::bmm", product},
      {"aten::mul.Tensor", product},
      {"aten::mul.Scalar", first},
      // A quotient, in its dividend.
      {"aten::div.Tensor", first},
      {"aten::div.Scalar", first},
      // Sums and choices of elements.
      {"aten::add.Tensor", jointly},
      {"aten::sub.Tensor", jointly},
      {"aten::neg", first},
      {"aten::sum", first},
      {"aten::sum.dim_IntList", first},
      {"aten::mean", first},
      {"aten::mean.dim", first},
      {"aten::avg_pool2d", first},
      {"aten::embedding", first},
      {"aten::pixel_shuffle", first},
      {"aten::pixel_unshuffle", first},
      {"aten::cat", jointly},
      {"aten::stack", jointly},
      // Backwards, in the gradient of the output.
      {"aten::threshold_backward", first},
      {"aten::gelu_backward", first},
      {"aten::tanh_backward", first},
      {"aten::_softmax_backward_data", first},
      {"aten::_log_softmax_backward_data", first},
      {"aten::native_layer_norm_backward", first},
      {"aten::native_batch_norm_backward", first},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", first},
      {"aten::mse_loss_backward", first},
      {"aten::nll_loss_backward", first},
      {"aten::embedding_dense_backward", first},
      {"aten::convolution_backward", first},
      {"aten::avg_pool2d_backward", first},
      {"aten::slice_backward", first},
      {"aten::select_backward", first},
  };
  return all;
}

}  // namespace plumbline::proof
