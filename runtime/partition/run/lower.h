// Lowering: a part of a joint graph becomes an executable graph, so that one executor runs captured and partitioned
// programs alike (runtime/graph/run/program.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <span>
#include <string>

#include "runtime/graph/run/program.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Binds the part to operators and constants. Its inputs and outputs are those of the part; a number among them stands
/// for its hint, takes no value and gives none. Calls that lost their last reader's argument reuse its memory
/// (joint/overwriting.h). `replayed` become the program's replayed calls. Calls of the forward keep the grad mode that
/// they were traced in (some kernels look at it); those of the backward have none.
///
/// Throws InputError naming the node for an operator that does not exist or an argument that cannot be executed.
graph::Program lower(const JointGraph& graph, const Subgraph& part, const std::map<std::string, at::Tensor>& constants,
                     std::span<const NodeIndex> replayed);

/// Runs a lowered program once, below autograd and autocast. `inputs` are released at their last use. Writes one value
/// for each output, undefined for None and numbers. The forward records the random states that the backward replays;
/// a forward records gradients in no call where the caller's grad mode is off.
void run_lowered(const graph::Program& program, std::vector<at::Tensor> inputs, std::vector<at::Tensor>& outputs,
                 const graph::RandomStates& random);

}  // namespace plumbline::partition
