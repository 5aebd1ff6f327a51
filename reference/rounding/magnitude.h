// Proves that a case of exact truth is exact: bounds its numbers for every order of summation.
//
// The argument. Let every tensor of a run hold integers, and let every sum have terms whose absolute values add up to
// at most 2^p, where p is the number of significand bits of the format. Then every partial sum, in any order and any
// grouping, is an integer of at most that size, so the format holds it exactly; no operation rounds, and every correct
// run gives the same bits. (Hardware that accumulates in a wider format has even more room.)
//
// The method. The same computation is run in float64 on absolute values: |parameters|, |inputs|, and subtracted values
// negated (a target becomes -|target|, a learning rate negative), so that differences add up. For operators that are
// sums of products with coefficients >= 0 (linear, matmul, add, mul, sum, embedding, index, cat, scaling, and all their
// backwards) each result of this run is an upper bound for the sum of absolute terms of the real one, by induction:
// |sum of products| <= sum of products of bounds. It also holds for relu and abs: they do not increase absolute values,
// and where the real run lets a gradient pass (x > 0), the bound is > 0 and lets it pass too. max, sign, division by
// data, subtraction, norms and transcendental functions have no such property.
//
// Complex numbers count as pairs. They may be added and conjugated; conjugation and lazy negation are left out of the
// run, since a bound of a number bounds the negated one. Their products subtract, and are not accepted.
//
// The run measures every floating-point tensor that an operator reads or returns, in forward and backward and in the
// accumulation into .grad: its largest absolute value (for a mean also the sum that it divides), whether all values are
// integers, and whether the argument holds for the call. For a sum of products that means: the call reads and returns
// numbers >= 0, and subtracts only numbers <= 0. Operators that move data may carry negative numbers. Division is
// accepted only by a power of two. `unproven` names the first call for which the argument does not hold. Compute the
// absolute values before the run: negation is not among the accepted operators.
//
// Assumptions: float64 itself is exact here (values stay below 2^53, far above every limit); the run takes the same
// branches as the real one; the real values are integers too (they are if the absolute ones are and the operators are
// those above); exponent ranges suffice.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "runtime/capture/interpose.h"

namespace plumbline::reference {

struct Magnitude {
  double max_abs = 0;    ///< infinite if any value was not finite
  std::string op;        ///< the operator that read or returned max_abs, such as "aten::addmm"; empty if none
  bool integral = true;  ///< whether every value was an integer
  std::string fraction;  ///< the first operator with a value that was not; empty if none
  std::string unproven;  ///< the first call to which the argument does not apply, and why; empty if none
};

/// The largest M such that all integers of absolute value <= M are exact: 2^53, 2^24, 2^11, 2^8 for float64, float32,
/// float16, bfloat16. Throws InputError for other types.
double exact_limit(at::ScalarType type);

/// Empty if the measured run is proven exact in `type`; otherwise the reason in one line. Throws InputError as
/// exact_limit() does.
std::string why_not_exact(const Magnitude& magnitude, at::ScalarType type);

/// Measures the operator calls of the thread on which a capture::InterposerScope installs it; calls leave their results
/// unchanged.
class MagnitudeInterposer : public capture::Interposer {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

  /// Measures a tensor that no operator returns, such as a final .grad; `where` takes the place of an operator in
  /// result().
  void see(const at::Tensor& tensor, const std::string& where);

  const Magnitude& result() const { return result_; }

 private:
  Magnitude result_;
};

}  // namespace plumbline::reference
