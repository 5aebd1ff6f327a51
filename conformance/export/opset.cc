#include "conformance/export/opset.h"

#include <algorithm>

namespace plumbline::conformance {

const std::vector<OpsetEntry>& opset() {
  static const std::vector<OpsetEntry> entries = {
      {"aten::_conj", {"self"}},
      {"aten::abs", {"self"}},
      {"aten::add.Tensor", {"self", "other", "alpha"}},
      {"aten::avg_pool2d",
       {"self", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"}},
      {"aten::batch_norm", {"input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps"}},
      {"aten::bmm", {"self", "mat2"}},
      {"aten::cat", {"tensors", "dim"}},
      {"aten::conv2d", {"input", "weight", "bias", "stride", "padding", "dilation", "groups"}},
      {"aten::conv_transpose2d.input",
       {"input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"}},
      {"aten::detach", {"self"}},
      {"aten::embedding", {"weight", "indices"}},
      {"aten::eq.Tensor", {"self", "other"}},
      {"aten::expand", {"self", "size"}},
      {"aten::full", {"size", "fill_value", "dtype"}},
      {"aten::gelu", {"self", "approximate"}},
      {"aten::layer_norm", {"input", "normalized_shape", "weight", "bias", "eps"}},
      {"aten::linear", {"input", "weight", "bias"}},
      {"aten::lstm.input",
       {"input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first"}},
      {"aten::mean.dim", {"self", "dim", "keepdim"}},
      {"aten::mse_loss", {"self", "target", "reduction"}},
      {"aten::mul.Tensor", {"self", "other"}},
      {"aten::permute", {"self", "dims"}},
      {"aten::relu", {"self"}},
      {"aten::remainder.Tensor", {"self", "other"}},
      {"aten::reshape", {"self", "shape"}},
      {"aten::scaled_dot_product_attention",
       {"query", "key", "value", "attn_mask", "is_causal", "scale", "enable_gqa"}},
      {"aten::select.int", {"self", "dim", "index"}},
      {"aten::slice.Tensor", {"self", "dim", "start", "end", "step"}},
      {"aten::softmax.int", {"self", "dim"}},
      {"aten::split_with_sizes", {"self", "split_sizes", "dim"}},
      {"aten::stack", {"tensors", "dim"}},
      {"aten::sum.dim_IntList", {"self", "dim", "keepdim"}},
      {"aten::tanh", {"self"}},
      {"aten::to.dtype", {"self", "dtype"}},
      {"aten::view_as_complex", {"self"}},
      {"aten::view_as_real", {"self"}},
      {"plumbline::gradient_hook", {"self", "factor", "limit"}},
  };
  return entries;
}

const OpsetEntry* find_in_opset(std::string_view name) {
  const std::vector<OpsetEntry>& all = opset();
  const auto it = std::lower_bound(all.begin(), all.end(), name, [](const OpsetEntry& entry, std::string_view wanted) {
    return entry.name < wanted;
  });
  return it != all.end() && it->name == name ? &*it : nullptr;
}

}  // namespace plumbline::conformance
