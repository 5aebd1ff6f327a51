#include "runtime/partition/explain.h"

#include "runtime/error.h"

namespace plumbline {
namespace {

std::string named(const JointNode& node) {
  std::string text = "'" + node.name + "'";
  if (node.kind == JointKind::Call) text += " (" + node.op + ")";
  return text;
}

/// Why the last node of a chain has to be there in the backward.
std::string why_wanted(const CutInput& input, NodeIndex node) {
  if (input.classes.required_backward[node])
    return input.classes.tangents_closure[node] ? "runs in the backward" : "is returned by the backward";
  return "is tagged to be computed again";
}

}  // namespace

std::string why_not_saved(const CutInput& input, NodeIndex index) {
  const JointNode& node = input.graph.nodes[index];
  switch (node.out.kind) {
    case JointResult::Kind::Tuple:
      return "it has several results";
    case JointResult::Kind::None:
      return "it has no result";
    case JointResult::Kind::Scalar:
      return "";
    case JointResult::Kind::Tensor:
      break;
  }
  if (node.epilogue_mutation && input.policy.epilogue_mutation_infinite) return "it is updated after the forward";
  if (input.policy.recompute_views && input.ops.view[index]) return "it is a view, and views are not saved";
  return "";
}

std::string explain_unbounded(const CutInput& input, const std::vector<NodeIndex>& chain,
                              const std::vector<Ban>& bans) {
  std::string text = "no partition exists: ";
  for (size_t i = 0; i < chain.size(); ++i) {
    const NodeIndex node = chain[i];
    const std::string needs = i == 0 ? "" : "it needs '" + input.graph.nodes[chain[i - 1]].name + "'";
    if (i > 0) text += "; ";
    text += named(input.graph.nodes[node]);
    if (i + 1 < chain.size() || (input.classes.required_backward[node] && !input.classes.tangents_closure[node])) {
      text += " cannot be saved because " + why_not_saved(input, node);
      text += ", and cannot be computed again because " + (i == 0 ? std::string(describe(bans[node])) : needs);
      if (i + 1 == chain.size()) text += ", but it " + why_wanted(input, node);
    } else {
      text += ' ' + why_wanted(input, node) + ", and " + (i == 0 ? std::string(describe(bans[node])) : needs);
    }
  }
  return text;
}

}  // namespace plumbline
