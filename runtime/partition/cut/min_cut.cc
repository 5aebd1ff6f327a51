#include "runtime/partition/cut/min_cut.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "runtime/error.h"
#include "runtime/partition/cut/bans.h"
#include "runtime/partition/cut/explain.h"
#include "runtime/partition/cut/max_flow.h"

namespace plumbline::partition {
namespace {

using Vertex = FlowNetwork::Vertex;
constexpr Vertex kSource = 0, kSink = 1;

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
  if (input.policy.params_free_to_save && input.classes.is_static[index]) return 0;
  const NodeFacts& node = input.ops.facts[index];
  const double weight =
      static_cast<double>(node.bytes) * powers[std::clamp(input.classes.distance_to_backward[index], 1, 100)];
  const int64_t whole = weight < 0x1p60 ? static_cast<int64_t>(weight) : int64_t{1} << 60;
  const auto users = input.edges.users(index);
  const bool materialized =
      node.input || input.edges.is_output[index] ||
      !std::all_of(users.begin(), users.end(), [&](NodeIndex user) { return fusible(input.ops, index, user); });
  return materialized ? whole : 2 * whole;
}

int64_t weight(const CutInput& input, NodeIndex index) {
  const NodeFacts& node = input.ops.facts[index];
  if (node.symbolic) return node.symbolic_float ? 4 : 1;
  if (!can_be_saved(input, index)) return FlowNetwork::kUnbounded;
  return tensor_weight(input, index);
}

/// Each node that the forward can compute is an edge from its `in` to its `out`: cut there, it is saved. What only the
/// backward computes is the sink.
class Network {
 public:
  Network(const CutInput& input, const std::vector<Ban>& bans) : vertex_(bans.size(), kSink), network_(number(input)) {
    network_.reserve(input.edges.input.size() + 2 * node_of_.size());
    for (const NodeIndex i : node_of_) {
      if (bans[i] != Ban::None) network_.add_edge(kSource, in(i), FlowNetwork::kUnbounded);
      if (input.classes.required_backward[i]) network_.add_edge(out(i), kSink, FlowNetwork::kUnbounded);
      if (input.policy.recompute_tags_force && input.ops.facts[i].must_recompute) {
        network_.add_edge(in(i), kSink, FlowNetwork::kUnbounded);
        continue;
      }
      network_.add_edge(in(i), out(i), weight(input, i));
      bool used_by_backward = false;
      for (const NodeIndex user : input.edges.users(i))
        if (in(user) != kSink)
          network_.add_edge(out(i), in(user), FlowNetwork::kUnbounded);
        else if (!std::exchange(used_by_backward, true))
          network_.add_edge(out(i), kSink, FlowNetwork::kUnbounded);
    }
  }

  FlowNetwork::Cut cut() const { return network_.min_cut(kSource, kSink); }
  bool is_saved(NodeIndex i, const FlowNetwork::Cut& cut) const {
    return in(i) != kSink && !cut.sink_side[in(i)] && cut.sink_side[out(i)];
  }
  /// The nodes along a path from source to sink.
  std::vector<NodeIndex> nodes_on(const std::vector<Vertex>& path) const {
    std::vector<NodeIndex> nodes;
    for (const Vertex vertex : path)
      if (vertex > kSink && (nodes.empty() || nodes.back() != node_of_[vertex / 2 - 1]))
        nodes.push_back(node_of_[vertex / 2 - 1]);
    return nodes;
  }

 private:
  Vertex in(NodeIndex node) const { return vertex_[node]; }
  Vertex out(NodeIndex node) const { return vertex_[node] + 1; }

  /// Gives vertices to the nodes; how many there are.
  int number(const CutInput& input) {
    for (NodeIndex i = 0; i < std::ssize(vertex_); ++i) {
      if (input.classes.required_backward[i] && input.classes.tangents_closure[i]) continue;
      vertex_[i] = 2 * static_cast<Vertex>(node_of_.size()) + 2;
      node_of_.push_back(i);
    }
    return 2 * static_cast<int>(node_of_.size()) + 2;
  }

  std::vector<NodeIndex> node_of_;  ///< by vertex / 2 - 1
  std::vector<Vertex> vertex_;      ///< by node: its `in`; the sink for what the backward computes
  FlowNetwork network_;
};

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

CutResult min_cut(const CutInput& input, const CutRules& rules, const std::vector<char>& dont_ban) {
  refuse_foreign_inputs(input.graph);
  const std::vector<Ban> bans = banned_from_recomputation(input, rules, dont_ban);
  const Network network(input, bans);
  const FlowNetwork::Cut cut = network.cut();
  if (cut.unbounded) throw InputError(explain_unbounded(input, network.nodes_on(cut.path), bans));
  CutResult result;
  for (NodeIndex i = 0; i < std::ssize(bans); ++i) {
    if (network.is_saved(i, cut)) result.saved.push_back(i);
    if (bans[i] != Ban::None) result.banned.push_back(i);
  }
  return result;
}

}  // namespace plumbline::partition
