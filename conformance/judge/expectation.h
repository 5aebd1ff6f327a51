// The judge's expectations beyond the detached run. Bounded truth: float64 values of the whole model with a running
// error bound for each element. Exact truth: the proof that the case is exact.
#pragma once

#include <string>

#include "conformance/judge/compare.h"
#include "reference/case.h"

namespace plumbline::conformance {

struct Expectation {
  TensorMap value;  ///< F64 (integers as they are): output, loss, grad, buffer, param
  Bounds bounds;
};

/// The whole model by micro-batch in float64, with bounds for the case's own precision; see rounding.h.
Expectation bounded_expectation(const reference::Case& c, uint64_t seed);

/// Why the numbers of an exact case may be inexact in its precision; empty if they are proven exact (magnitude.h).
std::string exactness_problem(const reference::Case& c, uint64_t seed);

/// Properties of a case, cut into a given number of stages, that decide which oracles apply.
struct CaseTraits {
  bool shares_parameters = false;     ///< a parameter lies in more than one stage
  bool draws_random_numbers = false;  ///< in training
  bool has_buffers = false;
  /// Several stages send back a gradient of one value, and one of them (other than the last, whose gradient is added
  /// first) has already summed several uses. The whole model adds in another order.
  bool groups_sums = false;
};
CaseTraits case_traits(const reference::Case& c, int stages, uint64_t seed);

}  // namespace plumbline::conformance
