#include "runtime/partition/run/split_backward_graph.h"

#include "runtime/error.h"

namespace plumbline::partition {

SplitBackward split_backward_graph(const Partition& partition, const std::vector<char>& wanted) {
  const JointGraph& graph = partition.graph;
  const Subgraph& backward = partition.backward;
  PLUMBLINE_CHECK(wanted.size() == backward.outputs.size(), "one word for each output of the backward");

  // Backwards from the gradients asked for. An input of the backward may be an inner node of the joint graph: what it
  // was made of is not followed.
  std::vector<char> is_input(graph.nodes.size(), 0), in_first(graph.nodes.size(), 0);
  for (const NodeIndex input : backward.inputs) is_input[input] = 1;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] && backward.outputs[i] != kNoNode) in_first[backward.outputs[i]] = 1;
  for (auto node = backward.ops.rbegin(); node != backward.ops.rend(); ++node)
    if (in_first[*node] && !is_input[*node])
      for_each_input(graph.nodes[*node], [&](NodeIndex input) { in_first[input] = 1; });
  for (const NodeIndex node : backward.ops)
    if (graph.nodes[node].kind == JointKind::GetItem && in_first[graph.nodes[node].args[0].node]) in_first[node] = 1;

  SplitBackward split;
  split.input_half.inputs = backward.inputs;
  std::vector<char> is_carried(graph.nodes.size(), 0), in_second(graph.nodes.size(), 0);
  const auto carry = [&](NodeIndex node) {
    if (in_second[node] || is_carried[node]) return;
    is_carried[node] = 1;
    split.carried.push_back(node);
  };
  for (const NodeIndex node : backward.ops) {
    if (in_first[node]) {
      split.input_half.ops.push_back(node);
    } else {
      in_second[node] = 1;
      split.weight_half.ops.push_back(node);
      for_each_input(graph.nodes[node], carry);
    }
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    (wanted[i] ? split.input_half : split.weight_half).outputs.push_back(backward.outputs[i]);
    if (!wanted[i] && backward.outputs[i] != kNoNode) carry(backward.outputs[i]);
  }
  split.input_half.outputs.insert(split.input_half.outputs.end(), split.carried.begin(), split.carried.end());
  split.weight_half.inputs = split.carried;
  return split;
}

}  // namespace plumbline::partition
