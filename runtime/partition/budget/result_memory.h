// In whose memory the results of a joint graph lie: what simulating one partition (memory.h) and pricing many choices
// (peak_model.h) have in common.
//
// A result is a tensor, a scalar, or nothing; a tuple gives its items' results, those of nested tuples in their place.
// They are numbered over the whole graph, node by node.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

struct ResultMemory {
  ResultMemory(const JointGraph& graph, const JointEdges& edges);

  /// The results of a node: begin(node) up to end(node).
  int32_t begin(NodeIndex node) const { return first[node]; }
  int32_t end(NodeIndex node) const { return first[node + 1]; }
  /// It is no view: of something that it gives it brings the memory.
  bool makes_memory(NodeIndex node) const;

  std::vector<int32_t> first;  ///< by node, and one more
  /// By result: an earlier one in whose memory it lies, of an input or of the same node; itself where it brings its
  /// own.
  std::vector<int32_t> shares;
  std::vector<int32_t> origin;  ///< by result: where the way along `shares` ends
  std::vector<int64_t> bytes;   ///< by result: of the memory that it lies in; 0 where that is held anyway
};

/// By storage: it belongs to an input of the forward or to a constant, so that holding it costs nothing.
std::vector<char> storages_held_anyway(const JointGraph& graph);

}  // namespace plumbline::partition
