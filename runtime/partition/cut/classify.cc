#include "runtime/partition/cut/classify.h"

#include <algorithm>

#include "runtime/error.h"
#include "runtime/partition/joint/effects.h"

namespace plumbline::partition {
namespace {

bool is_forward_input(const NodeFacts& node) { return node.primal || node.forward_seed; }

/// By node: whether it can be computed from the inputs of the forward.
std::vector<char> computable_in_forward(const std::vector<NodeFacts>& facts, const JointEdges& edges) {
  std::vector<char> computable(facts.size(), 0);
  for (NodeIndex i = 0; i < std::ssize(facts); ++i) {
    if (facts[i].input) {
      computable[i] = is_forward_input(facts[i]);
    } else if (!facts[i].only_in_backward) {
      const auto inputs = edges.inputs(i);
      computable[i] = std::all_of(inputs.begin(), inputs.end(), [&](NodeIndex input) { return computable[input]; });
    }
  }
  return computable;
}

/// The node that the forward returns for `output`: the output itself, or, if that is an in-place update that only the
/// backward makes, the updated value.
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

std::vector<char> required_in_forward(const JointGraph& graph, const JointEdges& edges, const OpClasses& ops) {
  const std::vector<NodeFacts>& facts = ops.facts;
  const std::vector<char> computable = computable_in_forward(facts, edges);
  const MustRun must = calls_that_must_run(graph, edges, ops.halves);
  std::vector<char> required(facts.size(), 0);
  for (const NodeIndex output : graph.forward_outputs())
    if (output != kNoNode) required[forward_result(graph, output, computable)] = 1;
  for (auto i = static_cast<NodeIndex>(facts.size()); i-- > 0;) {
    // As in PyTorch, an unused random draw does not stay.
    const bool stays_when_dead = must.in_forward[i] && facts[i].effects;
    if (is_forward_input(facts[i]) || (stays_when_dead && computable[i])) required[i] = 1;
    if (required[i])
      for (const NodeIndex input : edges.inputs(i)) required[input] = 1;
  }
  return required;
}

std::vector<char> required_in_backward(const std::vector<NodeFacts>& facts, const JointEdges& edges) {
  std::vector<char> required(facts.size(), 0);
  for (NodeIndex i = 0; i < std::ssize(facts); ++i) {
    const auto inputs = edges.inputs(i);
    required[i] = facts[i].tangent || facts[i].only_in_backward ||
                  std::any_of(inputs.begin(), inputs.end(), [&](NodeIndex input) { return required[input]; });
  }
  return required;
}

}  // namespace

NodeClasses classify_nodes(const JointGraph& graph, const JointEdges& edges, const Policy& policy, const OpClasses& ops,
                           const std::vector<int>& static_inputs) {
  const size_t n = graph.nodes.size();
  const std::vector<NodeFacts>& facts = ops.facts;
  NodeClasses classes;
  classes.required_forward = required_in_forward(graph, edges, ops);
  classes.required_backward = required_in_backward(facts, edges);
  std::vector<char> is_gradient(n, 0);
  for (const NodeIndex output : graph.backward_outputs())
    if (output != kNoNode) is_gradient[output] = 1;
  classes.tangents_closure.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const bool needs_tangent = classes.required_backward[i];
    classes.tangents_closure[i] = policy.belongs_to_backward(needs_tangent, is_gradient[i], is_forward_input(facts[i]));
    classes.required_backward[i] = needs_tangent || is_gradient[i];
  }

  classes.forward_order.assign(n, -1);
  int32_t order = 0;
  for (size_t i = 0; i < n; ++i)
    if (classes.required_forward[i]) classes.forward_order[i] = order++;

  classes.distance_to_backward.assign(n, 0);
  for (NodeIndex i = static_cast<NodeIndex>(n); i-- > 0;) {
    if (!classes.required_forward[i]) continue;
    int32_t distance = edges.is_output[i] ? policy.output_distance : kFarFromBackward;
    for (const NodeIndex user : edges.users(i)) distance = std::min(distance, classes.distance_to_backward[user] + 1);
    classes.distance_to_backward[i] = distance;
  }

  classes.is_static.assign(n, 0);
  std::vector<NodeIndex> primals;
  for (NodeIndex i = 0; i < std::ssize(facts) && facts[i].input; ++i)  // inputs come first
    if (facts[i].primal) primals.push_back(i);
  for (const int index : static_inputs)
    if (index >= 0 && index < std::ssize(primals)) classes.is_static[primals[index]] = 1;
  return classes;
}

}  // namespace plumbline::partition
