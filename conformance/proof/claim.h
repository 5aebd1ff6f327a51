// What a proof shows of a run. No torch.
#pragma once

namespace plumbline::proof {

enum class Claim {
  SameComputation,  ///< equal terms: the same operators and operands, in the same order of sums
  SameSum,          ///< equal over the real numbers, by laws of sums and factors (sums/normal_form.h)
};

}  // namespace plumbline::proof
