#include "runtime/engine/plan/shape_key.h"

#include <string_view>

namespace plumbline::engine {

void append_shapes(std::span<const at::Tensor> tensors, ShapeKey& key) {
  key.push_back(static_cast<int64_t>(tensors.size()));
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) {
      key.push_back(-1);
      continue;
    }
    key.push_back(tensor.dim());
    key.push_back(static_cast<int64_t>(tensor.scalar_type()));
    key.push_back(tensor.requires_grad());
    key.insert(key.end(), tensor.sizes().begin(), tensor.sizes().end());
  }
}

size_t ShapeKeyHash::operator()(const ShapeKey& key) const {
  const std::string_view bytes(reinterpret_cast<const char*>(key.data()), key.size() * sizeof(int64_t));
  return std::hash<std::string_view>()(bytes);
}

}  // namespace plumbline::engine
