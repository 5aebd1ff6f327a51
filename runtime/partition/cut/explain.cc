#include "runtime/partition/cut/explain.h"

#include <algorithm>

namespace plumbline::partition {
namespace {

std::string named(const JointNode& node) {
  std::string text = "'" + node.name + "'";
  if (node.kind == JointKind::Call) text += " (" + node.op + ")";
  return text;
}

std::string why_not_saved(const CutInput& input, NodeIndex index) {
  const JointNode& node = input.graph.nodes[index];
  if (node.out.kind == JointResult::Kind::Tuple) return "it has several results";
  if (node.out.kind == JointResult::Kind::None) return "it has no result";
  return node.epilogue_mutation ? "it is updated after the forward" : "it is a view, and views are not saved";
}

/// Why the backward needs the node.
std::string why_needed(const CutInput& input, NodeIndex node) {
  if (input.classes.required_backward[node]) return "the backward returns it";
  const auto users = input.edges.users(node);
  const auto user = std::ranges::find_if(users, [&](NodeIndex i) { return input.classes.tangents_closure[i]; });
  return named(input.graph.nodes[*user]) + " of the backward needs it";
}

}  // namespace

std::string explain_unbounded(const CutInput& input, const std::vector<NodeIndex>& chain,
                              const std::vector<Ban>& bans) {
  std::string text = "no partition exists: ";
  for (size_t i = 0; i < chain.size(); ++i) {
    const NodeIndex node = chain[i];
    const std::string why_not_again =
        i == 0 ? std::string(describe(bans[node])) : "it needs '" + input.graph.nodes[chain[i - 1]].name + "'";
    if (i > 0) text += "; ";
    text += named(input.graph.nodes[node]);
    if (input.policy.forced_to_recompute(input.ops.facts[node])) {
      text += " is tagged to be recomputed, and " + why_not_again;
      continue;
    }
    text += " cannot be saved because " + why_not_saved(input, node);
    text += ", and cannot be recomputed because " + why_not_again;
    if (i + 1 == chain.size()) text += ", but " + why_needed(input, node);
  }
  return text;
}

}  // namespace plumbline::partition
