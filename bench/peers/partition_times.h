// Times of partitions of one joint graph, by PyTorch's partitioner and by ours, and what the plans hold in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace plumbline::bench {

/// One mode on one graph.
struct PartitionTimes {
  std::string mode;                             ///< as PyTorch's answers name it: "min_cut", "budget=0.5"; or "bytes"
  std::vector<double> ours = {}, pytorch = {};  ///< seconds of calls; `pytorch` is empty in a mode that it lacks
  int64_t saved_bytes = 0;                      ///< storages of the saved values, each once, without the parameters'
  int64_t peak_bytes = 0;                       ///< simulated (budget/memory.h)
  std::string wrong = {};  ///< the first difference from PyTorch's answer; empty: equal, or none to compare
};

struct PartitionComparison {
  std::string torch;  ///< the version that answered
  size_t nodes = 0;   ///< of the joint graph
  std::vector<PartitionTimes> modes;
};

/// Reads what partition_times.py left in `out`, and partitions its graph in the same modes, by the same policy, and in
/// mode "bytes": each at least three times and for at least `seconds`. Throws InputError for a version of PyTorch for
/// which there is no policy, Error for missing or invalid files.
PartitionComparison partition_like_pytorch(const std::filesystem::path& out, double seconds);

/// A table with one row per mode: median milliseconds of both, PyTorch over ours, saved bytes, peak, and whether both
/// halves are node for node PyTorch's. A wrong mode has no numbers.
std::string to_table(const PartitionComparison& comparison);

}  // namespace plumbline::bench
