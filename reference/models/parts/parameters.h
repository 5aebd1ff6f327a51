// Sets the parameters of a model by their qualified names, and casts it to its dtype.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reference/loss.h"

namespace plumbline::models {

/// Real values: weights uniform with variance 2 / fan-in (He et al. 2015, so that eight layers preserve the scale),
/// embedding tables normal, scales of norms near one, biases small.
void set_real_parameters(torch::nn::Module& module, reference::Dtype dtype, uint64_t seed);

/// Whole numbers.
struct ExactParameters {
  /// Nonzero entries of -1 or +1 in each row of a weight matrix; the matrices cycle through the list in registration
  /// order.
  std::vector<int64_t> fans = {2, 1};
  /// On average one weight in this number is negative.
  int64_t negative_one_in = 2;
  int64_t bias_lo = -1, bias_hi = 1;
  /// If positive: exactly this many entries of each bias are -bias_hi or +bias_hi, the others 0.
  int64_t biased = 0;
};

/// Weights by fill_sparse_signs(); embedding tables of -1 and +1.
void set_exact_parameters(torch::nn::Module& module, reference::Dtype dtype, uint64_t seed,
                          const ExactParameters& exact);

/// The name of the stream for a batch's value `what` at step `step`.
std::string batch_stream(int step, const std::string& what);

/// Signed whole numbers of absolute value 1 to max, for inputs and targets of exact models.
at::Tensor exact_data(at::IntArrayRef sizes, int64_t max, reference::Dtype dtype, uint64_t seed, int step,
                      const std::string& what);
/// Normal, mean 0, variance 1.
at::Tensor real_data(at::IntArrayRef sizes, reference::Dtype dtype, uint64_t seed, int step, const std::string& what);
/// int64 in [0, count).
at::Tensor index_data(at::IntArrayRef sizes, int64_t count, uint64_t seed, int step, const std::string& what);

}  // namespace plumbline::models
