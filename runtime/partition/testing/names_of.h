// For tests: the names of nodes.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/partition.h"

namespace plumbline::testing {

/// "None" for kNoNode.
inline std::vector<std::string> names_of(const partition::JointGraph& graph,
                                         const std::vector<partition::NodeIndex>& nodes) {
  std::vector<std::string> names;
  for (const partition::NodeIndex node : nodes)
    names.push_back(node == partition::kNoNode ? "None" : graph.nodes[node].name);
  return names;
}

inline std::vector<std::string> saved_names(const partition::Partition& partition) {
  return names_of(partition.graph, partition.saved);
}

}  // namespace plumbline::testing
