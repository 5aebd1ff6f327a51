#include "runtime/partition/cut/classify.h"

#include <algorithm>

#include "runtime/error.h"
#include "runtime/partition/joint/effects.h"

namespace plumbline::partition {
namespace {

/// The facts needed about each node, collected in one pass because a JointNode is large.
struct Trait {
  bool input : 1 = false;
  bool forward_input : 1 = false;
  bool tangent : 1 = false;
  bool only_in_backward : 1 = false;
  bool stays_when_dead : 1 = false;  ///< a forward call with effects; as in PyTorch, not an unused random draw
};

std::vector<Trait> traits_of(const JointGraph& graph, const JointEdges& edges, const Policy& policy) {
  const MustRun must = calls_that_must_run(graph, edges);
  std::vector<Trait> traits;
  traits.reserve(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const JointNode& node = graph.nodes[i];
    traits.push_back({.input = node.is_input(),
                      .forward_input = is_forward_input(node),
                      .tangent = node.kind == JointKind::Tangent,
                      .only_in_backward = policy.halves.only_in_backward(node),
                      .stays_when_dead = must.in_forward[i] && has_effects(node)});
  }
  return traits;
}

/// By node: whether it can be computed from the inputs of the forward.
std::vector<char> computable_in_forward(const std::vector<Trait>& traits, const JointEdges& edges) {
  std::vector<char> computable(traits.size(), 0);
  for (NodeIndex i = 0; i < std::ssize(traits); ++i) {
    if (traits[i].input) {
      computable[i] = traits[i].forward_input;
    } else if (!traits[i].only_in_backward) {
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

std::vector<char> required_in_forward(const JointGraph& graph, const std::vector<Trait>& traits,
                                      const JointEdges& edges) {
  const std::vector<char> computable = computable_in_forward(traits, edges);
  std::vector<char> required(traits.size(), 0);
  for (const NodeIndex output : graph.forward_outputs())
    if (output != kNoNode) required[forward_result(graph, output, computable)] = 1;
  for (auto i = static_cast<NodeIndex>(traits.size()); i-- > 0;) {
    if (traits[i].forward_input || (traits[i].stays_when_dead && computable[i])) required[i] = 1;
    if (required[i])
      for (const NodeIndex input : edges.inputs(i)) required[input] = 1;
  }
  return required;
}

std::vector<char> required_in_backward(const std::vector<Trait>& traits, const JointEdges& edges) {
  std::vector<char> required(traits.size(), 0);
  for (NodeIndex i = 0; i < std::ssize(traits); ++i) {
    const auto inputs = edges.inputs(i);
    required[i] = traits[i].tangent || traits[i].only_in_backward ||
                  std::any_of(inputs.begin(), inputs.end(), [&](NodeIndex input) { return required[input]; });
  }
  return required;
}

}  // namespace

NodeClasses classify_nodes(const JointGraph& graph, const JointEdges& edges, const Policy& policy,
                           const std::vector<int>& static_inputs) {
  const size_t n = graph.nodes.size();
  const std::vector<Trait> traits = traits_of(graph, edges, policy);
  NodeClasses classes;
  classes.required_forward = required_in_forward(graph, traits, edges);
  classes.required_backward = required_in_backward(traits, edges);
  std::vector<char> is_gradient(n, 0);
  for (const NodeIndex output : graph.backward_outputs())
    if (output != kNoNode) is_gradient[output] = 1;
  classes.tangents_closure.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const bool needs_tangent = classes.required_backward[i];
    classes.tangents_closure[i] = policy.belongs_to_backward(needs_tangent, is_gradient[i], traits[i].forward_input);
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
  for (NodeIndex i = 0; i < std::ssize(graph.nodes) && traits[i].input; ++i)  // inputs come first
    if (graph.nodes[i].kind == JointKind::Primal) primals.push_back(i);
  for (const int index : static_inputs)
    if (index >= 0 && index < std::ssize(primals)) classes.is_static[primals[index]] = 1;
  return classes;
}

}  // namespace plumbline::partition
