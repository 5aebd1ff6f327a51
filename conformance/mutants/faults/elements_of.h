// The number of elements of a micro-batch's targets, by which some mutants weigh a mean.
#pragma once

#include "runtime/microbatch/targets.h"

namespace plumbline::conformance {

inline double elements_of(const Targets& targets) {
  double elements = 0;
  for (const at::Tensor& target : targets) elements += static_cast<double>(target.numel());
  return elements;
}

}  // namespace plumbline::conformance
