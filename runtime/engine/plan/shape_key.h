// ShapeKey: the shapes of a list of tensors as one value; the key of a plan.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::engine {

/// Equal for lists of tensors that agree in definedness, dtype, sizes and requires_grad.
using ShapeKey = std::vector<int64_t>;

/// Appends the shapes of `tensors` to `key`; allocates nothing if the capacity of `key` suffices.
void append_shapes(std::span<const at::Tensor> tensors, ShapeKey& key);

struct ShapeKeyHash {
  size_t operator()(const ShapeKey& key) const;
};

}  // namespace plumbline::engine
