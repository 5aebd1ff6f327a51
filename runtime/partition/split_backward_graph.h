// Splitting a backward graph into the gradients of the stage's inputs (I) and those of its parameters (W), for
// schedules that fill bubbles with weight gradients: a pass over the same IR. After the dI/dW split of PyTorch's
// partitioner
// (`omit_aot_autograd_runtime`) and the cut of runtime/backward/cut.h.
#pragma once

#include "runtime/partition/partition.h"

namespace plumbline {

struct SplitBackward {
  /// inputs: those of the backward; outputs: the gradients asked for first, then `carried`.
  Subgraph input_half;
  /// inputs: `carried`; outputs: the other gradients. No call runs in both halves.
  Subgraph weight_half;
  std::vector<NodeIndex> carried;
};

/// `wanted`: for each output of the backward (a primal), whether it belongs to the first half. What both need runs in
/// the first; of what is left, values that the second half needs are carried, each storage counted once where there is
/// a choice.
SplitBackward split_backward_graph(const Partition& partition, const std::vector<char>& wanted);

}  // namespace plumbline
