// For tests: the names of nodes.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::testing {

/// "None" for kNoNode.
inline std::vector<std::string> names_of(const partition::JointGraph& graph,
                                         const std::vector<partition::NodeIndex>& nodes) {
  std::vector<std::string> names;
  for (const partition::NodeIndex node : nodes)
    names.push_back(node == partition::kNoNode ? "None" : graph.nodes[node].name);
  return names;
}

}  // namespace plumbline::testing
