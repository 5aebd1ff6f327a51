// The leaves of a loss: a user's loss function may have parameters only if the stage that computes it holds them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "runtime/split/pipe.h"

namespace plumbline::engine {

/// Returns a leaf that requires a gradient, on which `loss` depends other than through the stage's `outputs`, and which
/// is no parameter in `state`, the stage's; nullopt if there is none, or if `loss` is a leaf itself, as emulated stages
/// have it. A backward would add to the leaf's .grad, and the end of the step would neither divide that gradient nor
/// sum it over replicas, nor restore it after an error. Takes time linear in the number of nodes between outputs and
/// loss.
std::optional<at::Tensor> foreign_leaf(const at::Tensor& loss, const std::vector<at::Tensor>& outputs,
                                       const split::StageState& state);

}  // namespace plumbline::engine
