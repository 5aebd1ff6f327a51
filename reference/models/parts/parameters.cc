#include "reference/models/parts/parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cmath>

#include "reference/models/parts/fill.h"
#include "reference/models/parts/layers.h"

namespace plumbline::models {
namespace {

/// torch::nn::Module::to() would also cast counting buffers (num_batches_tracked).
void cast(torch::nn::Module& module, reference::Dtype dtype) {
  const c10::NoGradGuard no_grad;
  for (at::Tensor& parameter : module.parameters()) parameter.set_data(parameter.to(reference::scalar_type(dtype)));
  for (at::Tensor& buffer : module.buffers())
    if (buffer.is_floating_point()) buffer.set_data(buffer.to(reference::scalar_type(dtype)));
}

/// Calls set(parameter, qualified name, owner) in registration order.
template <class Set>
void for_each_parameter(torch::nn::Module& module, Set set) {
  for (const auto& owner : module.named_modules("", /*include_self=*/false))
    for (const auto& parameter : owner.value()->named_parameters(/*recurse=*/false))
      set(parameter.value(), owner.key() + "." + parameter.key(), *owner.value());
}

}  // namespace

void set_real_parameters(torch::nn::Module& module, reference::Dtype dtype, uint64_t seed) {
  cast(module, dtype);
  for_each_parameter(module, [&](const at::Tensor& parameter, const std::string& name, torch::nn::Module& owner) {
    if (owner.as<Embedding>()) {
      fill_normal(parameter, seed, name, 0.0, 0.2);
    } else if (parameter.dim() >= 2) {
      const double fan_in = static_cast<double>(parameter.numel() / parameter.size(0));
      fill_uniform(parameter, seed, name, -std::sqrt(6.0 / fan_in), std::sqrt(6.0 / fan_in));
    } else if (name.ends_with("weight")) {
      fill_uniform(parameter, seed, name, 0.8, 1.2);
    } else {
      fill_uniform(parameter, seed, name, -0.1, 0.1);
    }
  });
}

void set_exact_parameters(torch::nn::Module& module, reference::Dtype dtype, uint64_t seed,
                          const ExactParameters& exact) {
  cast(module, dtype);
  size_t matrices = 0;
  for_each_parameter(module, [&](const at::Tensor& parameter, const std::string& name, torch::nn::Module& owner) {
    if (owner.as<Embedding>())
      fill_signed_integers(parameter, seed, name, 1);
    else if (parameter.dim() == 2)
      fill_sparse_signs(parameter, seed, name, exact.fans[matrices++ % exact.fans.size()], exact.negative_one_in);
    else if (exact.biased > 0)
      fill_sparse_vector(parameter, seed, name, exact.biased, exact.bias_hi);
    else
      fill_integers(parameter, seed, name, exact.bias_lo, exact.bias_hi);
  });
}

void set_uniform_parameters(torch::nn::Module& module, reference::Dtype dtype, uint64_t seed, int64_t max) {
  cast(module, dtype);
  for_each_parameter(module, [&](const at::Tensor& parameter, const std::string& name, torch::nn::Module&) {
    fill_integers(parameter, seed, name, -max, max);
  });
}

std::string batch_stream(int step, const std::string& what) { return "batch/" + std::to_string(step) + "/" + what; }

at::Tensor exact_data(at::IntArrayRef sizes, int64_t max, reference::Dtype dtype, uint64_t seed, int step,
                      const std::string& what) {
  at::Tensor data = at::empty(sizes, reference::scalar_type(dtype));
  fill_signed_integers(data, seed, batch_stream(step, what), max);
  return data;
}

at::Tensor real_data(at::IntArrayRef sizes, reference::Dtype dtype, uint64_t seed, int step, const std::string& what) {
  at::Tensor data = at::empty(sizes, reference::scalar_type(dtype));
  fill_normal(data, seed, batch_stream(step, what), 0.0, 1.0);
  return data;
}

at::Tensor index_data(at::IntArrayRef sizes, int64_t count, uint64_t seed, int step, const std::string& what) {
  at::Tensor data = at::empty(sizes, at::kLong);
  fill_integers(data, seed, batch_stream(step, what), 0, count - 1);
  return data;
}

}  // namespace plumbline::models
