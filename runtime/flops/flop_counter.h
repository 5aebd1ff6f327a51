// Counts the floating-point operations of the calls that run, by the formulas of flop_formulas.h.
#pragma once

#include "runtime/capture/interpose.h"

namespace plumbline::flops {

/// Sums the operations of matrix-like calls that reach the kernels, forward and backward, and forwards the calls.
/// Elementwise calls do not count here.
class FlopCounter : public capture::Interposer {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

  double flops() const { return flops_; }

 private:
  double flops_ = 0;
};

}  // namespace plumbline::flops
