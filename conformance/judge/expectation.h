// The judge's expectations besides the oracles' results in the case's dtype. Bounded truth: values in float64 with a
// running error bound for each element. Exact truth: the proof that every number of the case is exact.
#pragma once

#include <initializer_list>
#include <string>

#include "conformance/judge/compare.h"
#include "reference/case.h"
#include "reference/oracle/detached_run.h"
#include "reference/result_key.h"
#include "reference/rounding/rounding.h"

namespace plumbline::conformance {

struct Expectation {
  TensorMap value;  ///< F64; tensors of integers keep their dtype
  Bounds bounds;    ///< of the F64 tensors
};

/// Runs the whole model in float64, one micro-batch after another, and bounds the rounding errors of the same
/// computation in the case's dtype, estimated from so many samples (reference/rounding/rounding.h). Kinds output, loss,
/// input-grad, grad, buffer, param.
Expectation bounded_expectation(const reference::Case& c, uint64_t seed, int samples = reference::kRoundingSamples);

/// The same for the detached stages, executed in these orders (reference/oracle/detached_run.h): all kinds of results.
Expectation bounded_stages(const reference::Case& c, uint64_t seed, const reference::StageOrders& orders);

/// Returns the reason why a number of an exact case may be inexact in the case's dtype; empty if all numbers are proven
/// exact (reference/rounding/magnitude.h).
std::string exactness_problem(const reference::Case& c, uint64_t seed);

/// Properties of a case, cut into a given number of stages, that decide which oracles apply.
struct CaseTraits {
  bool shares_parameters = false;     ///< some parameter is used in more than one stage
  bool draws_random_numbers = false;  ///< in training mode
  bool has_buffers = false;
  bool runs_under_autocast = false;  ///< a part of some stage does
  /// Several stages consume one boundary value, and a stage other than the last consumer uses the value more than once.
  /// That stage sends back a partial sum, so the gradients are added in another order than in the whole model.
  bool groups_sums = false;
};
/// Captures and cuts the model. Throws InputError if it cannot be cut into `stages` stages.
CaseTraits case_traits(const reference::Case& c, int stages, uint64_t seed);

}  // namespace plumbline::conformance
