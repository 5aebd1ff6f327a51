// Layers that compute the gradients of their parameters apart from autograd, as a user's modules may do it (PyTorch's
// dw_builder). The engine of a case with weight_closures has them in place of aten::linear.
#pragma once

#include "runtime/engine/options.h"

namespace plumbline::conformance {

/// Replaces each call of aten::linear whose weight is a parameter. The new call has the same value; its backward
/// computes the gradient of the input, and queues those of weight and bias for take_weight_work() on the same thread.
void defer_weight_gradients(split::Pipe& pipe);

/// The queued gradients as work that adds them to .grad, in the order of the backward; empty if there are none. The
/// queue of this thread is empty afterwards.
engine::WeightWork take_weight_work();

}  // namespace plumbline::conformance
