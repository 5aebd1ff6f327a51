// The joint graph of a pipeline stage: its forward, and its backward from the gradients of its outputs.
#pragma once

#include <span>
#include <vector>

#include "runtime/partition/trace/trace.h"
#include "runtime/split/pipe.h"

namespace plumbline::engine {

/// Indexed by graph output of `stage`: nonzero if the output gets a gradient. All outputs of the last stage do, since
/// the loss may depend on any of them.
std::vector<char> gradients_that_come_back(const split::Pipe& pipe, int stage);

/// Traces `graph`, a stage bound to its parameters. Floating-point samples are random numbers between 0 and 1, the same
/// at each call, integer samples are 0; they have the strides of `inputs`, or are contiguous if `inputs` is empty.
/// `has_gradient` is a result of gradients_that_come_back(); an output without a gradient has no tangent (-1 in
/// tangent_of). Throws InputError as trace_joint() does, for an input that is a number, and for an output that needs a
/// gradient only because parameters require one that did not at capture.
partition::JointTrace trace_stage(const graph::Graph& graph, const std::vector<char>& has_gradient,
                                  std::span<const at::Tensor> inputs = {});

}  // namespace plumbline::engine
