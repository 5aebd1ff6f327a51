#include "runtime/partition/trace/layout.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>

namespace plumbline::partition {

std::vector<int64_t> memory_order(at::IntArrayRef sizes, at::IntArrayRef strides) {
  std::vector<int64_t> order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == 1) order.push_back(static_cast<int64_t>(d));
  const auto ones = static_cast<std::ptrdiff_t>(order.size());
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) order.push_back(static_cast<int64_t>(d));
  std::stable_sort(order.begin() + ones, order.end(), [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  return order;
}

bool is_in_memory_order(const at::Tensor& tensor) {
  const std::vector<int64_t> order = memory_order(tensor.sizes(), tensor.strides());
  const auto first = std::find_if(order.begin(), order.end(), [&](int64_t d) { return tensor.size(d) != 1; });
  return std::is_sorted(first, order.end());
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> back(order.size());
  for (size_t d = 0; d < order.size(); ++d) back[order[d]] = static_cast<int64_t>(d);
  return back;
}

bool lies_so(const at::Tensor& tensor, at::IntArrayRef strides) {
  if (tensor.numel() == 0) return true;
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (tensor.size(d) != 1 && tensor.stride(d) != strides[d]) return false;
  return true;
}

at::Tensor laid_out(const at::Tensor& tensor, at::IntArrayRef strides) {
  const std::vector<int64_t> order = memory_order(tensor.sizes(), strides);
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t size = tensor.size(order[i]);
    if (size != 1 && strides[order[i]] != step) return {};
    step *= size;
  }
  return tensor.permute(order).clone(at::MemoryFormat::Contiguous).permute(inverse(order));
}

at::Tensor memory_of(const at::Tensor& tensor) {
  int64_t length = tensor.numel() == 0 ? 0 : 1;
  for (int64_t d = 0; d < tensor.dim() && length > 0; ++d) length += (tensor.size(d) - 1) * tensor.stride(d);
  return tensor.as_strided({length}, {1});
}

at::Tensor copy_as_it_lies(const at::Tensor& tensor) {
  const c10::NoGradGuard no_grad;
  at::Tensor copy = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options());
  memory_of(copy).copy_(memory_of(tensor));
  return copy.requires_grad_(tensor.requires_grad());
}

}  // namespace plumbline::partition
