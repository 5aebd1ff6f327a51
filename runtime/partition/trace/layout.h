// The layout of tensors in memory: compares, copies and changes strides.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace plumbline::partition {

/// Returns the dimensions of size 1, then the others from the largest stride to the smallest. A tensor permuted by this
/// order has its elements in memory in the order of its indices.
std::vector<int64_t> memory_order(at::IntArrayRef sizes, at::IntArrayRef strides);
/// Whether the strides of `tensor` do not increase from left to right; dimensions of size 1 are ignored.
bool is_in_memory_order(const at::Tensor& tensor);
std::vector<int64_t> inverse(const std::vector<int64_t>& order);

/// Whether `tensor` has `strides`; dimensions of size 1 are ignored, and a tensor without elements has any strides.
bool lies_so(const at::Tensor& tensor, at::IntArrayRef strides);

/// Returns a copy of `tensor` with `strides`, made by calls that can be recorded. Undefined if the strides leave gaps
/// or let elements share memory.
at::Tensor laid_out(const at::Tensor& tensor, at::IntArrayRef strides);

/// Returns all memory from the first to the last element of `tensor`, as a view with one dimension.
at::Tensor memory_of(const at::Tensor& tensor);
/// Returns a copy with the same strides, gaps and shared elements; a leaf with the same requires_grad, and no view.
at::Tensor copy_as_it_lies(const at::Tensor& tensor);

}  // namespace plumbline::partition
