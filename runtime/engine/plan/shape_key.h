// ShapeKey: the shapes of a list of tensors as one value, the key of their plan.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::engine {

/// Equal for lists of tensors that agree in defined, dtype, sizes and requires_grad.
using ShapeKey = std::vector<int64_t>;

/// Appends the shapes of `tensors`; allocates nothing once `key` has the capacity.
void append_shapes(std::span<const at::Tensor> tensors, ShapeKey& key);

struct ShapeKeyHash {
  size_t operator()(const ShapeKey& key) const;
};

}  // namespace plumbline::engine
