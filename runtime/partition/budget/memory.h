// Simulates the memory that a partition holds over time: every storage lives from the call that makes it to its last
// use, as the executor (runtime/partition/run/run.h) frees it.
//
// Assumptions: a value is released after the last call that reads it; a view keeps the whole storage of its base alive;
// a call allocates new storages, except for results that share one with an input of the call (so a value that is
// recomputed in the backward gets its own memory, separate from any saved copy). The caller holds the forward's outputs
// until the backward ends. A tangent, like a saved value, is released after its last use in the backward; returned
// gradients are kept. Kernel workspace and states of random generators are not counted.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct MemoryProfile {
  /// Bytes held during each op (its results exist and its dying inputs are not yet freed): first the forward's ops,
  /// then the backward's. Primals and constants are not counted; tangents and returned gradients are.
  std::vector<int64_t> bytes;
  size_t backward_begin = 0;
  int64_t peak = 0;
  size_t peak_at = 0;         ///< position in `bytes`
  int64_t between = 0;        ///< held between forward and backward: forward outputs and saved values
  int64_t saved_storage = 0;  ///< storages behind the saved values, primals' excluded, each once
  int64_t saved_nodes = 0;    ///< PyTorch's count: bytes of the saved values as tensors
};

/// `overwriting`: calls that may overwrite a dying argument do so (joint/overwriting.h), as in our executor. Without it
/// the peak is the same or higher, as in executors that never overwrite.
MemoryProfile simulate_memory(const Partition& partition, bool overwriting = false);

/// The same for two halves that are not part of a Partition: values that the forward returns beyond the graph's own
/// outputs count as saved. Linear in the calls of both halves.
MemoryProfile simulate_memory(const JointGraph& graph, const JointEdges& edges, const Subgraph& forward,
                              const Subgraph& backward, bool overwriting = false);

}  // namespace plumbline::partition
