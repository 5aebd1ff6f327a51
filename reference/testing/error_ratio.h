// For tests: how far a run is from its error bounds.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <limits>
#include <string>

#include "reference/rounding/rounding.h"

namespace plumbline::reference {

/// The errors of a run relative to its bounds: `element` or `norm` above 1 is an alarm.
struct ErrorRatio {
  double element = 0;  ///< the largest |error| / bound over all elements
  double norm = 0;     ///< the largest relative norm of the error / rel_gate over all tensors
  std::string element_where, norm_where;
};

/// Compares `actual` (any floating type) with `expected`. A tensor that is missing, unexpected or of another shape, or
/// a non-finite number where a finite one is expected, makes `element` infinite. element_where and norm_where name the
/// tensors.
inline ErrorRatio error_ratio(const BoundedResults& expected, const NamedResults& actual) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  ErrorRatio out;
  const auto raise = [](double& worst, std::string& where, double ratio, const std::string& name) {
    if (!(ratio <= worst)) {
      worst = std::isnan(ratio) ? infinity : ratio;
      where = name;
    }
  };
  for (const auto& [name, tensor] : actual)
    if (!expected.value.contains(name)) raise(out.element, out.element_where, infinity, name);
  for (const auto& [name, value] : expected.value) {
    const auto it = actual.find(name);
    if (it == actual.end() || it->second.sizes() != value.sizes()) {
      raise(out.element, out.element_where, infinity, name);
      continue;
    }
    const at::Tensor got = it->second.detach().to(at::kDouble).contiguous();
    const double *a = got.const_data_ptr<double>(), *v = value.const_data_ptr<double>(),
                 *b = expected.bound.at(name).const_data_ptr<double>();
    double squares = 0, norm = 0;
    for (int64_t i = 0; i < value.numel(); ++i) {
      if (a[i] == v[i]) {
        if (std::isfinite(v[i])) norm += v[i] * v[i];
        continue;
      }
      const double error = std::abs(a[i] - v[i]);
      raise(out.element, out.element_where, error / b[i], name);
      squares += error * error;
      norm += v[i] * v[i];
    }
    if (squares > 0 && norm > 0)
      raise(out.norm, out.norm_where, std::sqrt(squares / norm) / expected.rel_gate.at(name), name);
  }
  return out;
}

}  // namespace plumbline::reference
