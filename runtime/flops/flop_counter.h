// Counts the floating-point operations of executed operator calls, by the formulas of flop_formulas.h.
#pragma once

#include "runtime/capture/interpose.h"

namespace plumbline::flops {

/// Executes every interposed call, forward and backward, and adds up the operations of the matrix-like ones, those with
/// a formula: a multiply-add counts as 2 operations. Other calls, such as elementwise ones, count nothing. Not
/// thread-safe: each thread whose calls are counted needs a counter of its own.
class FlopCounter : public capture::Interposer {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

  /// Returns the number of operations of all calls since construction.
  double flops() const { return flops_; }

 private:
  double flops_ = 0;
};

}  // namespace plumbline::flops
