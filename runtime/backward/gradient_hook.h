// A user's hook on the gradient of a value, as an operator.
//
// A capture records operators, so it cannot see x.register_hook(...) in a model's forward: the stages would train
// without the hook. A forward that calls gradient_hook() keeps it, wherever the model is split, in backwards in halves
// and in recomputation too.
#pragma once

#include <ATen/core/Tensor.h>

#include <limits>

namespace plumbline::backward {

/// Returns an alias of `x`; without autograd, nothing more. In a backward, a hook on the alias replaces its gradient g,
/// summed over all uses of the alias, by clamp(g * factor, -limit, limit), once. The operator is
/// plumbline::gradient_hook(Tensor(a) self, float factor, float limit) -> Tensor(a).
at::Tensor gradient_hook(const at::Tensor& x, double factor, double limit = std::numeric_limits<double>::infinity());

}  // namespace plumbline::backward
