#include "runtime/partition/cut/min_cut.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "runtime/error.h"
#include "runtime/partition/cut/bans.h"
#include "runtime/partition/cut/explain.h"
#include "runtime/partition/flow/max_flow.h"

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

int64_t weight(const CutInput& input, NodeIndex index) {
  const NodeFacts& node = input.ops.facts[index];
  if (node.symbolic) return node.symbolic_float ? 4 : 1;
  if (!tensor_can_be_saved(input, index)) return FlowNetwork::kUnbounded;
  return input.policy.weight(input, index);
}

/// Each node that the forward can compute is an edge from its `in` to its `out` vertex: a cut through the edge saves
/// the node. Nodes that only the backward computes are merged into the sink.
class Network {
 public:
  Network(const CutInput& input, const std::vector<Ban>& bans) : vertex_(bans.size(), kSink), network_(number(input)) {
    network_.reserve(input.edges.input.size() + 2 * node_of_.size());
    for (const NodeIndex i : node_of_) {
      if (bans[i] != Ban::None) network_.add_edge(kSource, in(i), FlowNetwork::kUnbounded);
      if (input.classes.required_backward[i]) network_.add_edge(out(i), kSink, FlowNetwork::kUnbounded);
      if (input.policy.forced_to_recompute(input.ops.facts[i])) {
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

  /// Assigns vertices to the nodes; returns the number of vertices.
  int number(const CutInput& input) {
    for (NodeIndex i = 0; i < std::ssize(vertex_); ++i) {
      if (input.classes.required_backward[i] && input.classes.tangents_closure[i]) continue;
      vertex_[i] = 2 * static_cast<Vertex>(node_of_.size()) + 2;
      node_of_.push_back(i);
    }
    return 2 * static_cast<int>(node_of_.size()) + 2;
  }

  std::vector<NodeIndex> node_of_;  ///< by vertex / 2 - 1
  std::vector<Vertex> vertex_;      ///< by node: its `in`; the sink for nodes that only the backward computes
  FlowNetwork network_;
};

}  // namespace

int64_t rules::weight_by_distance(const CutInput& input, NodeIndex index) {
  static const auto powers = [] {
    std::array<double, 101> powers;
    for (int i = 0; i <= 100; ++i) powers[i] = std::pow(1.1, i);
    return powers;
  }();
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

int64_t rules::weight_with_free_parameters(const CutInput& input, NodeIndex index) {
  return input.classes.is_static[index] ? 0 : weight_by_distance(input, index);
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
