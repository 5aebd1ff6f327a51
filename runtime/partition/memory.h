// The memory that a partition holds over time, by running it in thought: every storage lives from the call that makes
// it to its last use, as the executor (runtime/partition/run.h) frees it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline {

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

MemoryProfile simulate_memory(const Partition& partition);

}  // namespace plumbline
