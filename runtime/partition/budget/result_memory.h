// The memory in which each result of a joint graph lies; used to simulate one partition (memory.h) and to price many
// choices (peak_model.h).
//
// A result is a tensor, a scalar or nothing. A tuple has the results of its items, nested tuples flattened in place.
// Results are numbered over the whole graph, node by node; "by result" means indexed by that number.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

struct ResultMemory {
  ResultMemory(const JointGraph& graph, const JointEdges& edges);

  /// The results of a node are those from begin(node) to end(node) - 1.
  int32_t begin(NodeIndex node) const { return first[node]; }
  int32_t end(NodeIndex node) const { return first[node + 1]; }
  /// Returns false for a view: a node whose results all lie in the memory of inputs. True for a node without results.
  bool makes_memory(NodeIndex node) const;

  std::vector<int32_t> first;  ///< indexed by NodeIndex, plus one entry for the end: the node's first result
  /// By result: the earlier result, of an input or of the same node, whose memory it shares; itself if it has new
  /// memory.
  std::vector<int32_t> shares;
  std::vector<int32_t> origin;  ///< by result: the result that made the memory, at the end of the chain of `shares`
  std::vector<int64_t> bytes;   ///< by result: size of its memory; 0 for scalars and for storages held anyway
};

/// Returns for each storage whether an input other than a tangent, or a constant, holds it anyway, at no cost.
std::vector<char> storages_held_anyway(const JointGraph& graph);

}  // namespace plumbline::partition
