// What a partition means in numbers, as PyTorch's partitioners.py tells it with `debug_partitioner`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct PartitionStatistics {
  /// Operators of the joint graph that the policy does not count as cheap, each once, in the order of the graph.
  std::vector<std::string> ops_not_recomputable;
  int64_t saved_bytes = 0;                             ///< PyTorch's count: the saved values as tensors, a number is 1
  std::vector<std::pair<int64_t, std::string>> sizes;  ///< of the saved values, ascending by bytes, then name
  int recomputed = 0, forward = 0, backward = 0;       ///< calls and getitems, constants are not counted
  /// How often an operator is run in both, the most frequent first, then as the forward runs them.
  std::vector<std::pair<std::string, int>> recomputed_ops;
};

PartitionStatistics statistics_of(const Partition& partition, const Policy& policy);

/// The lines in which PyTorch writes them to its log.
std::string to_text(const PartitionStatistics& statistics);

}  // namespace plumbline::partition
