#include "reference/models/parts/identity.h"

#include <algorithm>
#include <cmath>

namespace plumbline::models {

bool is_polynomial_model(const std::string& name) { return name.starts_with("exact-polynomial"); }

int64_t largest_leaf(reference::Dtype dtype) { return dtype == reference::Dtype::F64 ? 32 : 2; }

std::optional<IdentityTest> identity_test(const reference::Case& c) {
  const bool polynomial = is_polynomial_model(c.model) && c.loss.kind == reference::LossKind::Sum &&
                          c.optimizer.learning_rate == 0 && c.data == 0;
  if (!polynomial) return std::nullopt;
  return IdentityTest{kPolynomialDegree, 2 * largest_leaf(c.dtype) + 1};
}

double pass_bound(int degree, int64_t values, int draws) {
  return std::pow(std::min(1.0, static_cast<double>(degree) / static_cast<double>(values)), draws);
}

}  // namespace plumbline::models
