// What the judge expects beyond the detached run: for bounded truth, float64 values of the whole model, with a running
// error bound for each element; for exact truth, the proof that it is exact.
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

/// Why the numbers of an exact case may not be exact in its precision; empty when they are proven to be: see
/// magnitude.h.
std::string exactness_problem(const reference::Case& c, uint64_t seed);

/// What the oracles have to know of a case that is cut into so many stages.
struct CaseTraits {
  bool shares_parameters = false;     ///< a parameter lies in more than one stage
  bool draws_random_numbers = false;  ///< in training
  bool has_buffers = false;
  /// A value's gradient is the sum of what several stages send back, one of which (not the last, whose share comes
  /// first) has added up several uses of its own by then: another order of additions than the whole model's.
  bool groups_sums = false;
};
CaseTraits case_traits(const reference::Case& c, int stages, uint64_t seed);

}  // namespace plumbline::conformance
