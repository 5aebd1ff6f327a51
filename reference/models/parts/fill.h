// Fills tensors with numbers that depend only on (seed, qualified name, index); see counter.h. Torch's own generator is
// neither used nor advanced, so that dropout masks do not depend on how a model was made.
//
// The index is the row-major position. Values are computed in double and cast to the tensor's dtype. The functions
// write in place, without autograd, to a tensor of any strides and any CPU dtype; they do nothing to a tensor on the
// meta device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace plumbline::models {

/// Uniform in [lo, hi).
void fill_uniform(const at::Tensor& tensor, uint64_t seed, std::string_view name, double lo, double hi);

/// Normal with the given mean and standard deviation (Box and Muller). The C library's log and cos may differ in the
/// last bit between machines: suitable for truths that are computed at run time, not for stored ones.
void fill_normal(const at::Tensor& tensor, uint64_t seed, std::string_view name, double mean, double deviation);

/// Whole numbers, uniform between lo and hi, both included.
void fill_integers(const at::Tensor& tensor, uint64_t seed, std::string_view name, int64_t lo, int64_t hi);

/// Whole numbers, uniform from -max to max without zero.
void fill_signed_integers(const at::Tensor& tensor, uint64_t seed, std::string_view name, int64_t max);

/// Sets `count` randomly chosen entries of a vector to +size or -size, the others to 0.
void fill_sparse_vector(const at::Tensor& vector, uint64_t seed, std::string_view name, int64_t count, int64_t size);

/// A matrix of -1, 0, +1 in which every row and every column of each square block has exactly `fan` nonzero entries:
/// `fan` disjoint permutations. On average one nonzero entry in `negative_one_in` is negative. So a product with a
/// square matrix grows by exactly `fan` in the worst case, forward and backward, while every input and output takes
/// part. The longer side must be a multiple of the shorter; lines along the longer side have fan * longer / shorter
/// nonzero entries. Throws InputError for other shapes, and for a fan that is not in 1 .. shorter side.
void fill_sparse_signs(const at::Tensor& matrix, uint64_t seed, std::string_view name, int64_t fan,
                       int64_t negative_one_in = 2);

}  // namespace plumbline::models
