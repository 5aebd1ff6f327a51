// The loss of a case: one scalar from the outputs and the target of a micro-batch or a whole batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reference/case.h"

namespace plumbline::reference {

/// Only output 0 takes part. For cross entropy it is [..., classes] and the target [...] of class indices.
at::Tensor compute_loss(const LossSpec& spec, const std::vector<at::Tensor>& outputs, const at::Tensor& target);

/// Whether it has a loss with such a target: an evaluation may come without one.
bool has_loss(const LossSpec& spec, const at::Tensor& target);

/// How many of the targets count: of what a mean loss is a mean, and so by how much a micro-batch weighs.
int64_t counted_targets(const at::Tensor& target);

/// Element type of a case's parameters and floating inputs.
at::ScalarType scalar_type(Dtype dtype);

}  // namespace plumbline::reference
