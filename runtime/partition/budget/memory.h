// Simulates the memory that a partition holds over time: every storage lives from the call that allocates it to its
// last use, as in the executor (runtime/partition/run/run.h).
//
// Assumptions: a value is released after the last call that reads it; a view keeps the whole storage of its base alive;
// a call allocates new storages, except for results that share a storage with an input of the call (so a value that is
// recomputed in the backward gets new memory, separate from any saved copy). The caller holds the forward's outputs
// until the backward ends. A tangent, like a saved value, is released after its last use in the backward; returned
// gradients are kept. Kernel workspace and states of random generators are not counted.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct MemoryProfile {
  /// Bytes held during each op: first forward.ops, then backward.ops. During an op its results exist and its dying
  /// inputs are not yet freed. Memory of constants and of inputs other than tangents is not counted; tangents and
  /// returned gradients are.
  std::vector<int64_t> bytes;
  size_t backward_begin = 0;  ///< index in `bytes` of the backward's first op
  int64_t peak = 0;           ///< bytes: the larger of `between` and the maximum of `bytes`
  size_t peak_at = 0;         ///< index of the peak in `bytes`; 0 if the peak is `between`
  int64_t between = 0;        ///< bytes held between forward and backward: forward outputs and saved values
  int64_t saved_storage = 0;  ///< bytes of the storages of the saved values, each once, without the uncounted ones
  int64_t saved_nodes = 0;    ///< PyTorch's count: bytes of the saved tensors, primals and every view included
};

/// Simulates the forward, then the backward. With `overwriting`, a call that may overwrite a dying argument does so
/// (joint/overwriting.h), as in this project's executor. Otherwise the peak is the same or higher, as in executors that
/// never overwrite.
MemoryProfile simulate_memory(const Partition& partition, bool overwriting = false);

/// The same for two halves that are not part of a Partition: the forward's outputs beyond graph.forward_outputs() count
/// as saved. `edges` are those of `graph`. Linear in the graph.
MemoryProfile simulate_memory(const JointGraph& graph, const JointEdges& edges, const Subgraph& forward,
                              const Subgraph& backward, bool overwriting = false);

}  // namespace plumbline::partition
