#include "reference/oracle/gradient_norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/all.h>
#include <ATen/ops/any.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
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

/// 0, or infinity or NaN if an element is, in that type.
double not_finite(const at::Tensor& gradient, Dtype dtype) {
  const Unobserved unobserved;
  const at::Tensor stored = gradient.to(scalar_type(dtype));
  if (at::any(at::isnan(stored)).item<bool>()) return std::numeric_limits<double>::quiet_NaN();
  return at::all(at::isfinite(stored)).item<bool>() ? 0.0 : std::numeric_limits<double>::infinity();
}

/// The sum of the squares, or the largest absolute value.
double share(const at::Tensor& gradient, NormKind kind) {
  const at::Tensor exact = gradient.to(at::kDouble);
  if (kind == NormKind::Two) return at::sum(at::mul(exact, exact)).item<double>();
  const Unobserved selection;
  return at::max(at::abs(exact)).item<double>();
}

}  // namespace

double gradient_norm(const NamedTensors& parameters, NormKind kind, Dtype dtype) {
  const c10::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> gradients;
  for (const auto& [name, parameter] : parameters)
    if (parameter.grad().defined() && parameter.numel() > 0) gradients.emplace(name, parameter.grad());
  double special = 0;
  for (const auto& [name, gradient] : gradients) special += not_finite(gradient, dtype);
  if (special != 0) return special;
  // A norm is computed in float32 or better, so only that precision has rounding errors to model.
  std::optional<Unobserved> unobserved;
  if (dtype == Dtype::BF16 || dtype == Dtype::F16) unobserved.emplace();
  double total = 0;
  for (const auto& [name, gradient] : gradients)
    total = kind == NormKind::Two ? total + share(gradient, kind) : std::max(total, share(gradient, kind));
  return kind == NormKind::Two ? std::sqrt(total) : total;
}

}  // namespace plumbline::reference
