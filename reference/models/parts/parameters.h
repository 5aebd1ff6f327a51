// Sets the parameters of a model by their qualified names, and casts its parameters and floating-point buffers to a
// dtype. Parameters of the root module itself, outside any child, are cast but not set. Also makes data for batches.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reference/loss.h"

namespace plumbline::models {

/// Real values: weights uniform with variance 2 / fan-in (He et al. 2015, so that eight layers preserve the scale),
/// embedding tables normal with deviation 0.2, scales of norms in [0.8, 1.2), biases in [-0.1, 0.1).
void set_real_parameters(torch::nn::Module& module, reference::Dtype dtype, uint64_t seed);

/// Limits of the whole numbers that set_exact_parameters() draws.
struct ExactParameters {
  /// The nonzero entries in each row of a square weight matrix (`fan` of fill_sparse_signs); the matrices cycle through
  /// the list in registration order.
  std::vector<int64_t> fans = {2, 1};
  /// On average one nonzero weight in this number is negative.
  int64_t negative_one_in = 2;
  /// Biases are uniform between these numbers, both included.
  int64_t bias_lo = -1, bias_hi = 1;
  /// If positive: exactly this many entries of each bias are -bias_hi or +bias_hi, the others 0.
  int64_t biased = 0;
};

/// Matrices by fill_sparse_signs(), embedding tables of -1 and +1, all other parameters as biases. Throws InputError as
/// fill_sparse_signs() does.
void set_exact_parameters(torch::nn::Module& module, reference::Dtype dtype, uint64_t seed,
                          const ExactParameters& exact);

/// All parameters are independent whole numbers, uniform from -max to max.
void set_uniform_parameters(torch::nn::Module& module, reference::Dtype dtype, uint64_t seed, int64_t max);

/// The name of the random stream for the value `what` of batch number `step`.
std::string batch_stream(int step, const std::string& what);

/// Data for the value `what` of batch number `step`: signed whole numbers of absolute value 1 to max, for inputs and
/// targets of exact models.
at::Tensor exact_data(at::IntArrayRef sizes, int64_t max, reference::Dtype dtype, uint64_t seed, int step,
                      const std::string& what);
/// The same with normal values of mean 0 and variance 1.
at::Tensor real_data(at::IntArrayRef sizes, reference::Dtype dtype, uint64_t seed, int step, const std::string& what);
/// The same with int64 values, uniform in [0, count).
at::Tensor index_data(at::IntArrayRef sizes, int64_t count, uint64_t seed, int step, const std::string& what);

}  // namespace plumbline::models
