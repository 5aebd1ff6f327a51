// The loss of a case: one scalar from the outputs and the target of a micro-batch or a whole batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reference/case.h"

namespace plumbline::reference {

/// Only output 0 takes part. For cross entropy it is [..., classes] and the target [...] of class indices.
at::Tensor compute_loss(const LossSpec& spec, const std::vector<at::Tensor>& outputs, const at::Tensor& target);

/// Whether the case has a loss for this target: an evaluation may have no target.
bool has_loss(const LossSpec& spec, const at::Tensor& target);

/// The number of targets that count: the divisor of a mean loss, and so the weight of a micro-batch.
int64_t counted_targets(const at::Tensor& target);

/// Element type of a case's parameters and floating inputs.
at::ScalarType scalar_type(Dtype dtype);

}  // namespace plumbline::reference
