// Statistics of a partition, as PyTorch's partitioners.py logs them with its option `debug_partitioner`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct PartitionStatistics {
  /// Operators of the joint graph that are not OpClasses::recomputable ("aten.mm"), each once, in graph order.
  std::vector<std::string> ops_not_recomputable;
  int64_t saved_bytes = 0;                             ///< sum of cut_bytes() over the saved values
  std::vector<std::pair<int64_t, std::string>> sizes;  ///< bytes and name of each saved value, ascending
  /// Numbers of calls and getitems, without constants: in both halves, in the forward, in the backward.
  int recomputed = 0, forward = 0, backward = 0;
  /// Operators and their numbers of calls that run in both halves, most frequent first, then in the forward's order.
  std::vector<std::pair<std::string, int>> recomputed_ops;
};

/// Counts `partition`; `policy` decides which operators are recomputable.
PartitionStatistics statistics_of(const Partition& partition, const Policy& policy);

/// Returns the lines that PyTorch writes to its log, each with a newline.
std::string to_text(const PartitionStatistics& statistics);

}  // namespace plumbline::partition
