// How tensors lie in memory: comparing it, copying it, bringing another about.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace plumbline::partition {

/// The dimensions from that of the longest steps to that of the shortest, those of one element first: permuted so, a
/// tensor lies in the order of its indices.
std::vector<int64_t> memory_order(at::IntArrayRef sizes, at::IntArrayRef strides);
/// Whether that is the order in which the dimensions stand.
bool is_in_memory_order(const at::Tensor& tensor);
std::vector<int64_t> inverse(const std::vector<int64_t>& order);

/// Whether `tensor` lies as `strides` say; dimensions of one element have no say.
bool lies_so(const at::Tensor& tensor, at::IntArrayRef strides);

/// `tensor` laid out with `strides`: a copy, by calls that can be recorded. Undefined where these leave gaps, or
/// several elements share memory.
at::Tensor laid_out(const at::Tensor& tensor, at::IntArrayRef strides);

/// All memory from the first to the last element of `tensor`, as a view of one dimension.
at::Tensor memory_of(const at::Tensor& tensor);
/// A copy with the same strides, whatever they leave out or share, that is no view and a leaf.
at::Tensor copy_as_it_lies(const at::Tensor& tensor);

}  // namespace plumbline::partition
