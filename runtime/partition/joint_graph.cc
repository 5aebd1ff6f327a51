#include "runtime/partition/joint_graph.h"

namespace plumbline {

JointEdges edges_of(const JointGraph& graph) {
  const size_t n = graph.nodes.size();
  JointEdges edges;
  edges.input_begin.reserve(n + 1);
  edges.user_begin.assign(n + 1, 0);
  edges.is_output.assign(n, 0);
  std::vector<NodeIndex> seen_by(n, kNoNode);
  for (size_t i = 0; i < n; ++i) {
    edges.input_begin.push_back(static_cast<int32_t>(edges.input.size()));
    for_each_input(graph.nodes[i], [&](NodeIndex input) {
      if (seen_by[input] == static_cast<NodeIndex>(i)) return;
      seen_by[input] = static_cast<NodeIndex>(i);
      edges.input.push_back(input);
      ++edges.user_begin[input + 1];
    });
  }
  edges.input_begin.push_back(static_cast<int32_t>(edges.input.size()));
  for (size_t i = 0; i < n; ++i) edges.user_begin[i + 1] += edges.user_begin[i];
  edges.user.resize(edges.input.size());
  std::vector<int32_t> next(edges.user_begin.begin(), edges.user_begin.end() - 1);
  for (size_t i = 0; i < n; ++i)
    for (const NodeIndex input : edges.inputs(static_cast<NodeIndex>(i)))
      edges.user[next[input]++] = static_cast<NodeIndex>(i);
  for (const NodeIndex output : graph.outputs)
    if (output != kNoNode) edges.is_output[output] = 1;
  return edges;
}

}  // namespace plumbline
