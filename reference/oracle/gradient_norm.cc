#include "reference/oracle/gradient_norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/all.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "reference/loss.h"
#include "reference/oracle/precision.h"

namespace plumbline::reference {
namespace {

bool is_finite(const at::Tensor& gradient, Dtype dtype) {
  const Unobserved unobserved;
  return at::all(at::isfinite(gradient.to(scalar_type(dtype)))).item<bool>();
}

}  // namespace

double gradient_norm(const NamedTensors& parameters, NormKind kind, Dtype dtype) {
  const c10::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> gradients;
  for (const auto& [name, parameter] : parameters)
    if (parameter.grad().defined()) gradients.emplace(name, parameter.grad());
  for (const auto& [name, gradient] : gradients)
    if (!is_finite(gradient, dtype)) return std::numeric_limits<double>::infinity();
  // A norm is computed in float32 or better, so only that precision has rounding errors to model.
  std::optional<Unobserved> unobserved;
  if (dtype == Dtype::BF16 || dtype == Dtype::F16) unobserved.emplace();
  double squares = 0, largest = 0;
  for (const auto& [name, gradient] : gradients) {
    const at::Tensor exact = gradient.to(at::kDouble);
    squares += at::sum(at::mul(exact, exact)).item<double>();
    const Unobserved selection;
    largest = std::max(largest, at::max(at::abs(exact)).item<double>());
  }
  return kind == NormKind::Two ? std::sqrt(squares) : largest;
}

}  // namespace plumbline::reference
