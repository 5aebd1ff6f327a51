// Lowering: converts a part of a joint graph to an executable program, so that one executor runs captured and
// partitioned graphs alike (runtime/graph/run/program.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <span>
#include <string>

#include "runtime/graph/run/program.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Binds the part to operators and constants (JointTrace::constants). The program has the inputs and outputs of the
/// part; a number among them is replaced by its hint, so its input is ignored and its output undefined. A call may
/// overwrite an argument that no later call reads (joint/overwriting.h). The program records or replays the random
/// states of the calls in `replayed`, in that order. Calls of the forward run in the grad mode in which they were
/// traced (it selects the path of some kernels); calls of the backward run without gradients.
///
/// Throws InputError naming the node if a call cannot be bound (bind_call.h), reads a value that the part lacks, or a
/// constant is missing.
graph::Program lower(const JointGraph& graph, const Subgraph& part, const std::map<std::string, at::Tensor>& constants,
                     std::span<const NodeIndex> replayed);

/// Runs a lowered program once, below autograd and autocast. `inputs` are released at their last use. Replaces
/// `outputs` by one tensor for each output, undefined for None and numbers. `random`: a forward records the states of
/// its replayed calls (mode Record), the backward restores them (mode Replay). If the caller's grad mode is off, all
/// calls of a forward run without gradients; a backward ignores the caller's grad mode.
void run_lowered(const graph::Program& program, std::vector<at::Tensor> inputs, std::vector<at::Tensor>& outputs,
                 const graph::RandomStates& random);

}  // namespace plumbline::partition
