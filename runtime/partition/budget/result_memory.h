// Which memory each result of a joint graph lies in: shared by the simulation of one partition (memory.h) and the
// pricing of many choices (peak_model.h).
//
// A result is a tensor, a scalar, or nothing; a tuple contributes the results of its items, nested tuples flattened in
// place. Results are numbered over the whole graph, node by node.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

struct ResultMemory {
  ResultMemory(const JointGraph& graph, const JointEdges& edges);

  /// The results of a node are begin(node) up to end(node).
  int32_t begin(NodeIndex node) const { return first[node]; }
  int32_t end(NodeIndex node) const { return first[node + 1]; }
  /// The node is not a view: it makes the memory of at least one of its results.
  bool makes_memory(NodeIndex node) const;

  std::vector<int32_t> first;  ///< by node, and one more
  /// By result: an earlier result in whose memory it lies, of an input or of the same node; itself if it makes its own.
  std::vector<int32_t> shares;
  std::vector<int32_t> origin;  ///< by result: the end of the chain of `shares`
  std::vector<int64_t> bytes;   ///< by result: of the memory that it lies in; 0 if that is held anyway
};

/// By storage: whether it belongs to an input of the forward or to a constant, so that holding it costs nothing.
std::vector<char> storages_held_anyway(const JointGraph& graph);

}  // namespace plumbline::partition
