// The memory that a partition holds over time, by running it in thought: every storage lives from the call that makes
// it to its last use, as the executor (runtime/partition/run/run.h) frees it.
//
// What is assumed of the run: a value is released after the last call that reads it; a view keeps the whole storage of
// what it views; a call makes new storages, except for results that share one with an input of the call (so a value
// that runs again in the backward gets memory of its own beside what was saved). The caller holds the forward's
// outputs until the backward ends. A tangent, like a saved value, goes after its last use in the backward; returned
// gradients stay. Kernels' own workspace and the states of random generators are not counted.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct MemoryProfile {
  /// Bytes after each op while it runs (its results are there, its dying inputs still are): first the forward's, then
  /// the backward's. Primals and constants are not counted; tangents and gradients returned are.
  std::vector<int64_t> bytes;
  size_t backward_begin = 0;
  int64_t peak = 0;
  size_t peak_at = 0;         ///< position in `bytes`
  int64_t between = 0;        ///< held between forward and backward: forward outputs, and what is saved
  int64_t saved_storage = 0;  ///< storages behind the saved values that are no primal's, each once
  int64_t saved_nodes = 0;    ///< PyTorch's count: bytes of the saved values as tensors
};

/// `overwriting`: calls that may write over a dying argument do (joint/overwriting.h), as in our executor; without it,
/// as in any other, the peak is the same or higher.
MemoryProfile simulate_memory(const Partition& partition, bool overwriting = false);

/// The same for parts that are not made into a Partition: what the forward returns beyond the graph's own outputs is
/// saved. Linear in the calls of both parts.
MemoryProfile simulate_memory(const JointGraph& graph, const JointEdges& edges, const Subgraph& forward,
                              const Subgraph& backward, bool overwriting = false);

}  // namespace plumbline::partition
