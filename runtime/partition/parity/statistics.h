// Statistics of a partition, as PyTorch's partitioners.py logs them with `debug_partitioner`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct PartitionStatistics {
  /// Operators of the joint graph that the policy does not consider cheap, each once, in graph order.
  std::vector<std::string> ops_not_recomputable;
  int64_t saved_bytes = 0;                             ///< PyTorch's count: the saved values as tensors; a scalar is 1
  std::vector<std::pair<int64_t, std::string>> sizes;  ///< of the saved values, ascending by bytes, then name
  int recomputed = 0, forward = 0, backward = 0;       ///< calls and getitems; constants are not counted
  /// How often each operator runs in both halves, most frequent first, then in the forward's order.
  std::vector<std::pair<std::string, int>> recomputed_ops;
};

PartitionStatistics statistics_of(const Partition& partition, const Policy& policy);

/// The lines that PyTorch writes to its log.
std::string to_text(const PartitionStatistics& statistics);

}  // namespace plumbline::partition
