// The results of a run of a case: tensors under result keys, for the runtime and for the oracles.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "reference/case.h"
#include "reference/result_key.h"
#include "runtime/graph/host_tensors.h"

namespace plumbline::reference {

/// Indexed by the text of a ResultKey.
using Results = std::map<std::string, at::Tensor>;

/// Stores a copy of the tensor's current values, in place of an earlier result under the key; complex numbers in pairs.
inline void put(Results& results, const ResultKey& key, const at::Tensor& tensor) {
  results.insert_or_assign(to_string(key), graph::in_pairs(tensor.detach()).clone());
}

/// Whether boundaries, outputs and gradients are kept at each step: true if the case has no Optimizer step. A training
/// run with an optimizer keeps only its losses, norms, the gradients of its Read steps, and its final parameters,
/// buffers and optimizer state, which also reveal an earlier fault.
inline bool keeps_details(const Case& c) {
  for (const Step& step : c.steps)
    if (step == StepKind::Optimizer) return false;
  return true;
}

}  // namespace plumbline::reference
