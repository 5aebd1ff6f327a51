// ShapeKey: the shapes of a list of tensors as one value, to look up what was planned for them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::engine {

/// Numbers that are equal where defined, dtype, sizes and requires_grad of all tensors are.
using ShapeKey = std::vector<int64_t>;

/// Appends the shapes of `tensors`; allocates nothing once `key` has the capacity.
void append_shapes(std::span<const at::Tensor> tensors, ShapeKey& key);

struct ShapeKeyHash {
  size_t operator()(const ShapeKey& key) const;
};

}  // namespace plumbline::engine
