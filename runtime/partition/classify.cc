#include "runtime/partition/classify.h"

#include <algorithm>

#include "runtime/error.h"

namespace plumbline {
namespace {

bool any(std::span<const NodeIndex> nodes, const std::vector<char>& marked) {
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeIndex node) { return marked[node]; });
}

/// By node: it can be computed from the inputs of the forward.
std::vector<char> computable_in_forward(const JointGraph& graph, const JointEdges& edges, const Policy& policy) {
  std::vector<char> computable(graph.nodes.size(), 0);
  for (NodeIndex i = 0; i < std::ssize(graph.nodes); ++i) {
    const JointNode& node = graph.nodes[i];
    if (node.is_input()) {
      computable[i] = is_forward_input(node);
    } else if (!(policy.honours_marks && must_be_in_backward(node))) {
      const auto inputs = edges.inputs(i);
      computable[i] = std::all_of(inputs.begin(), inputs.end(), [&](NodeIndex input) { return computable[input]; });
    }
  }
  return computable;
}

/// What the forward returns for `output`: itself, or, where that is an update in place which only the backward makes,
/// the value that is updated.
NodeIndex forward_result(const JointGraph& graph, NodeIndex output, const std::vector<char>& computable) {
  if (computable[output]) return output;
  const JointNode& node = graph.nodes[output];
  if (node.op == "aten::copy_" && must_be_in_backward(node) && !node.args.empty()) {
    const JointArgument& updated = node.args.front();
    if (updated.kind == JointArgument::Kind::Node && computable[updated.node]) return updated.node;
  }
  throw InputError("forward output '" + node.name +
                   "' cannot be computed in the forward: it needs a tangent, or is marked as part of the backward");
}

std::vector<char> required_in_forward(const JointGraph& graph, const JointEdges& edges, const Policy& policy) {
  const std::vector<char> computable = computable_in_forward(graph, edges, policy);
  std::vector<char> required(graph.nodes.size(), 0);
  for (const NodeIndex output : graph.forward_outputs())
    if (output != kNoNode) required[forward_result(graph, output, computable)] = 1;
  for (NodeIndex i = static_cast<NodeIndex>(graph.nodes.size()); i-- > 0;) {
    const JointNode& node = graph.nodes[i];
    // A random draw that nobody uses may go; other calls with effects stay.
    const bool stays_when_dead = node.writes || (node.impure && !node.seeded);
    if (is_forward_input(node) || (stays_when_dead && computable[i])) required[i] = 1;
    if (required[i])
      for (const NodeIndex input : edges.inputs(i)) required[input] = 1;
  }
  return required;
}

}  // namespace

NodeClasses classify_nodes(const JointGraph& graph, const JointEdges& edges, const Policy& policy,
                           const std::vector<int>& static_inputs) {
  const size_t n = graph.nodes.size();
  NodeClasses classes;
  classes.required_backward.assign(n, 0);
  for (NodeIndex i = 0; i < std::ssize(graph.nodes); ++i) {
    const JointNode& node = graph.nodes[i];
    classes.required_backward[i] = node.kind == JointKind::Tangent ||
                                   (policy.honours_marks && must_be_in_backward(node)) ||
                                   any(edges.inputs(i), classes.required_backward);
  }
  classes.tangents_closure = classes.required_backward;
  for (const NodeIndex output : graph.backward_outputs())
    if (output != kNoNode) classes.required_backward[output] = 1;
  if (policy.only_inputs_pass_through_as_gradients)
    for (size_t i = 0; i < n; ++i)
      classes.tangents_closure[i] = classes.required_backward[i] && !is_forward_input(graph.nodes[i]);

  classes.required_forward = required_in_forward(graph, edges, policy);
  classes.forward_order.assign(n, -1);
  int32_t order = 0;
  for (size_t i = 0; i < n; ++i)
    if (classes.required_forward[i]) classes.forward_order[i] = order++;

  classes.distance_to_backward.assign(n, 0);
  for (NodeIndex i = static_cast<NodeIndex>(n); i-- > 0;) {
    if (!classes.required_forward[i]) continue;
    int32_t distance = policy.outputs_are_next_to_backward && edges.is_output[i] ? 1 : NodeClasses::kFar;
    for (const NodeIndex user : edges.users(i)) distance = std::min(distance, classes.distance_to_backward[user] + 1);
    classes.distance_to_backward[i] = distance;
  }

  classes.is_static.assign(n, 0);
  std::vector<NodeIndex> primals;
  for (NodeIndex i = 0; i < std::ssize(graph.nodes); ++i)
    if (graph.nodes[i].kind == JointKind::Primal) primals.push_back(i);
  for (const int index : static_inputs)
    if (index >= 0 && index < std::ssize(primals)) classes.is_static[primals[index]] = 1;
  return classes;
}

}  // namespace plumbline
