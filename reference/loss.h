// The loss of a case: one scalar from the outputs and the target of a micro-batch or of a whole batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reference/case.h"

namespace plumbline::reference {

/// Uses only output 0, and `target` only for Mse and CrossEntropy. For cross entropy the output is [..., classes], and
/// the target holds class indices [...], ignored where they are kIgnoredTarget.
at::Tensor compute_loss(const LossSpec& spec, const std::vector<at::Tensor>& outputs, const at::Tensor& target);

/// Whether there is a loss for this target: always for Sum and Output; for the other kinds, if `target` is defined.
bool has_loss(const LossSpec& spec, const at::Tensor& target);

/// The number of class indices in `target` that are not kIgnoredTarget: the divisor of a mean loss, and so the weight
/// of a micro-batch.
int64_t counted_targets(const at::Tensor& target);

/// The element type of a case's parameters and floating-point inputs.
at::ScalarType scalar_type(Dtype dtype);

}  // namespace plumbline::reference
