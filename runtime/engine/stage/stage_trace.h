// The joint graph of a pipeline stage: its forward, and its backward from the gradients that return.
#pragma once

#include <span>
#include <vector>

#include "runtime/partition/trace/trace.h"
#include "runtime/split/pipe.h"

namespace plumbline::engine {

/// By graph output of `stage`: whether it gets a gradient. For the last stage all count: the loss decides.
std::vector<char> gradients_that_come_back(const split::Pipe& pipe, int stage);

/// Traces `graph`, a stage bound to its parameters, on numbers between 0 and 1 (integers: 0), the same at each call:
/// with the strides of `inputs`, or contiguous without them. Outputs that get no gradient have no tangent (-1 in
/// tangent_of). Throws InputError as trace_joint() does, for an input that is a number, and for an output that would
/// need a gradient because parameters now require one that did not at capture.
partition::JointTrace trace_stage(const graph::Graph& graph, const std::vector<char>& has_gradient,
                                  std::span<const at::Tensor> inputs = {});

}  // namespace plumbline::engine
