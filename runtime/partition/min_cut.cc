#include "runtime/partition/min_cut.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/error.h"
#include "runtime/partition/bans.h"
#include "runtime/partition/explain.h"
#include "runtime/partition/max_flow.h"

namespace plumbline {
namespace {

using Vertex = FlowNetwork::Vertex;
constexpr Vertex kSource = 0, kSink = 1;
// Each node is an edge from its `in` to its `out`: cut there, it is saved.
constexpr Vertex in(NodeIndex node) { return 2 * node + 2; }
constexpr Vertex out(NodeIndex node) { return 2 * node + 3; }
constexpr NodeIndex node_of(Vertex vertex) { return vertex / 2 - 1; }

void refuse_foreign_inputs(const JointGraph& graph) {
  for (const JointNode& node : graph.nodes) {
    if (!node.is_input()) return;  // inputs come first
    if (node.kind == JointKind::OtherInput || node.out.kind == JointResult::Kind::None ||
        node.out.kind == JointResult::Kind::Tuple)
      throw InputError("input '" + node.name +
                       "' of the joint graph is neither a tensor nor a symbolic size: a BackwardState or another "
                       "Python object cannot be partitioned here");
  }
}

/// What saving a tensor weighs: its bytes, times 1.1 for each step that it is away from the backward (1 to 100), and
/// twice that where it need not be written to memory otherwise.
int64_t tensor_weight(const CutInput& input, NodeIndex index) {
  static const auto powers = [] {
    std::array<double, 101> powers;
    for (int i = 0; i <= 100; ++i) powers[i] = std::pow(1.1, i);
    return powers;
  }();
  const JointNode& node = input.graph.nodes[index];
  if (input.policy.params_free_to_save && input.classes.is_static[index]) return 0;
  const double weight =
      static_cast<double>(cut_bytes(node)) * powers[std::clamp(input.classes.distance_to_backward[index], 1, 100)];
  const int64_t whole = weight < 0x1p61 ? static_cast<int64_t>(weight) : int64_t{1} << 61;
  const auto users = input.edges.users(index);
  const bool materialized =
      node.is_input() || input.edges.is_output[index] ||
      !std::all_of(users.begin(), users.end(), [&](NodeIndex user) { return fusible(input.ops, index, user); });
  return materialized ? whole : 2 * whole;
}

int64_t weight(const CutInput& input, NodeIndex index) {
  const JointNode& node = input.graph.nodes[index];
  if (node.out.kind == JointResult::Kind::Scalar) return node.out.dtype == "float" ? 4 : 1;
  if (!why_not_saved(input, index).empty()) return FlowNetwork::kUnbounded;
  return tensor_weight(input, index);
}

FlowNetwork network_of(const CutInput& input, const std::vector<Ban>& bans) {
  const auto count = static_cast<NodeIndex>(input.graph.nodes.size());
  FlowNetwork network(2 * count + 2);
  network.reserve(input.edges.input.size() + 2 * static_cast<size_t>(count));
  for (NodeIndex i = 0; i < count; ++i) {
    if (bans[i] != Ban::None) network.add_edge(kSource, in(i), FlowNetwork::kUnbounded);
    if (input.classes.required_backward[i]) {
      const bool computed_there = input.classes.tangents_closure[i];
      network.add_edge(computed_there ? in(i) : out(i), kSink, FlowNetwork::kUnbounded);
      if (computed_there) continue;
    }
    if (input.policy.recompute_tags_force && must_recompute(input.graph.nodes[i])) {
      network.add_edge(in(i), kSink, FlowNetwork::kUnbounded);
      continue;
    }
    network.add_edge(in(i), out(i), weight(input, i));
    for (const NodeIndex user : input.edges.users(i)) network.add_edge(out(i), in(user), FlowNetwork::kUnbounded);
  }
  return network;
}

}  // namespace

CutRules CutRules::of(const Policy& policy) {
  return {policy.ban_used_far_apart,   policy.ban_long_fusible_chains, policy.ban_materialized_backward,
          policy.ban_not_in_allowlist, policy.ban_reductions,          true};
}

CutRules CutRules::aggressive(const Policy& policy) {
  const bool others = !policy.aggressive_only_denies;
  return {false, false, false, false, others && policy.ban_reductions, others};
}

std::vector<std::string> CutRules::names() const {
  std::vector<std::string> names;
  if (ban_used_far_apart) names.emplace_back("used_far_apart");
  if (ban_long_fusible_chains) names.emplace_back("long_fusible_chains");
  if (ban_materialized_backward) names.emplace_back("materialized_backward");
  if (ban_not_in_allowlist) names.emplace_back("not_in_allowlist");
  if (ban_reductions) names.emplace_back("reductions");
  return names;
}

int64_t cut_bytes(const JointNode& node) {
  switch (node.out.kind) {
    case JointResult::Kind::None:
      return 0;
    case JointResult::Kind::Scalar:
      return 1;
    case JointResult::Kind::Tensor:
      return node.out.bytes;
    case JointResult::Kind::Tuple:
      break;
  }
  int64_t sum = 0;
  for (const JointResult& item : node.out.items)
    if (item.kind == JointResult::Kind::Tensor) sum += item.bytes;
  return sum;
}

CutResult min_cut(const CutInput& input, const CutRules& rules, const std::vector<char>& dont_ban) {
  refuse_foreign_inputs(input.graph);
  const std::vector<Ban> bans = banned_from_recomputation(input, rules, dont_ban);
  const FlowNetwork::Cut cut = network_of(input, bans).min_cut(kSource, kSink);
  if (cut.unbounded) {
    std::vector<NodeIndex> chain;
    for (const Vertex vertex : cut.path)
      if (vertex > kSink && (chain.empty() || chain.back() != node_of(vertex))) chain.push_back(node_of(vertex));
    throw InputError(explain_unbounded(input, chain, bans));
  }
  CutResult result;
  for (NodeIndex i = 0; i < std::ssize(input.graph.nodes); ++i) {
    if (!cut.sink_side[in(i)] && cut.sink_side[out(i)]) result.saved.push_back(i);
    if (bans[i] != Ban::None) result.banned.push_back(i);
  }
  return result;
}

}  // namespace plumbline
