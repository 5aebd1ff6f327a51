// Splitting a backward graph into the gradients of the stage's inputs (I) and those of its parameters (W), for
// schedules that fill bubbles with weight gradients (zero bubble, arXiv 2401.10241): a pass over the same IR, after the
// dI/dW split of PyTorch's partitioner (`omit_aot_autograd_runtime`).
#pragma once

#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct SplitBackward {
  /// inputs: those of the backward; outputs: the gradients asked for (kNoNode for None), then `carried`.
  Subgraph input_half;
  /// inputs: `carried`; outputs: the other gradients (kNoNode for None).
  Subgraph weight_half;
  /// What the second half reads: inputs of the backward that wait for it, and results of the first half.
  std::vector<NodeIndex> carried;
};

/// `wanted`, for each output of the backward: whether the first half makes it. The first half runs what those need and
/// nothing else, so that they leave as early as they can; the second half runs the rest. No call runs in both: what
/// both need, a recomputation included, runs in the first and its result is carried. Elements of a call of several
/// results are taken apart in the half that runs the call. Both halves keep the backward's order. Linear.
SplitBackward split_backward_graph(const Partition& partition, const std::vector<char>& wanted);

}  // namespace plumbline::partition
