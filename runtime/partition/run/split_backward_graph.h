// Splits a backward graph into the gradients of the stage's inputs (I) and the gradients of its parameters (W), for
// schedules that fill bubbles with weight gradients (zero bubble, arXiv 2401.10241). A pass over the joint graph, after
// the dI/dW split of PyTorch's partitioner (`omit_aot_autograd_runtime`).
#pragma once

#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct SplitBackward {
  /// inputs: those of the backward; outputs: the wanted gradients (kNoNode for None), then `carried`.
  Subgraph input_half;
  /// inputs: `carried`; outputs: the other gradients (kNoNode for None).
  Subgraph weight_half;
  /// The values that the second half reads: inputs of the backward, and results of the first half.
  std::vector<NodeIndex> carried;
};

/// `wanted`, one flag for each output of the backward: whether the first half makes that gradient. The first half runs
/// only the calls that the wanted gradients need, so that these are ready as early as possible; the second half runs
/// the others. No call runs twice: a call that both need, such as a recomputed one, runs in the first half, and its
/// result is carried. Getitems run in the half of their call. Both halves keep the backward's order. Linear. Aborts if
/// `wanted` has another length than the outputs.
SplitBackward split_backward_graph(const Partition& partition, const std::vector<char>& wanted);

}  // namespace plumbline::partition
