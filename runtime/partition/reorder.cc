#include "runtime/partition/reorder.h"

#include <algorithm>
#include <utility>

#include "runtime/partition/joint/effects.h"

namespace plumbline::partition {
namespace {

/// Places calls in their new order, each after the calls it needs.
class Order {
 public:
  Order(const JointGraph& graph, const JointEdges& edges, const Subgraph& part)
      : edges_(edges), placed_(graph.nodes.size(), 0), position_(graph.nodes.size(), 0) {
    for (const NodeIndex input : part.inputs) placed_[input] = 1;
    for (size_t k = 0; k < part.ops.size(); ++k) position_[part.ops[k]] = static_cast<int32_t>(k);
    ops.reserve(part.ops.size());
  }

  /// Places `nodes` and all that they need, in their original order.
  void place_by_position(std::span<const NodeIndex> nodes) {
    const size_t begin = ops.size();
    pending_.assign(nodes.begin(), nodes.end());
    while (!pending_.empty()) {
      const NodeIndex node = pending_.back();
      pending_.pop_back();
      if (placed_[node]) continue;
      placed_[node] = 1;
      ops.push_back(node);
      for (const NodeIndex input : edges_.inputs(node)) pending_.push_back(input);
    }
    std::sort(ops.begin() + static_cast<std::ptrdiff_t>(begin), ops.end(),
              [&](NodeIndex a, NodeIndex b) { return position_[a] < position_[b]; });
  }

  /// Places `nodes` one after the other, deepest first, each after its inputs, deepest first.
  void place_by_depth(std::span<const NodeIndex> nodes, const std::vector<int32_t>& depth) {
    // Children are pushed in reverse; a node is reached a second time once all of its inputs are placed.
    const auto push = [&](std::span<const NodeIndex> children) {
      const auto begin = static_cast<std::ptrdiff_t>(pending_.size());
      pending_.insert(pending_.end(), children.begin(), children.end());
      std::stable_sort(pending_.begin() + begin, pending_.end(),
                       [&](NodeIndex a, NodeIndex b) { return depth[a] > depth[b]; });
      std::reverse(pending_.begin() + begin, pending_.end());
    };
    pending_.clear();
    push(nodes);
    while (!pending_.empty()) {
      const NodeIndex node = pending_.back();
      if (placed_[node] == 1) {
        pending_.pop_back();
      } else if (placed_[node] == kOpen) {
        pending_.pop_back();
        placed_[node] = 1;
        ops.push_back(node);
      } else {
        placed_[node] = kOpen;
        push(edges_.inputs(node));
      }
    }
  }

  std::vector<NodeIndex> ops;

 private:
  static constexpr char kOpen = 2;  ///< its inputs are being placed

  const JointEdges& edges_;
  std::vector<char> placed_;
  std::vector<int32_t> position_;
  std::vector<NodeIndex> pending_;
};

/// By node: the number of calls on the longest path from an input.
std::vector<int32_t> depths_of(const JointGraph& graph, const JointEdges& edges, const Subgraph& part) {
  std::vector<int32_t> depth(graph.nodes.size(), 0);
  for (const NodeIndex op : part.ops) {
    for (const NodeIndex input : edges.inputs(op)) depth[op] = std::max(depth[op], depth[input]);
    ++depth[op];
  }
  return depth;
}

/// The outputs without duplicates.
std::vector<NodeIndex> distinct_outputs(const JointGraph& graph, const Subgraph& part) {
  std::vector<NodeIndex> outputs;
  std::vector<char> seen(graph.nodes.size(), 0);
  for (const NodeIndex output : part.outputs)
    if (output != kNoNode && !std::exchange(seen[output], 1)) outputs.push_back(output);
  return outputs;
}

}  // namespace

void reorder_as_autograd(const JointGraph& graph, const JointEdges& edges, Subgraph& backward, ReorderBy by,
                         Reordering reordering) {
  if (reordering == Reordering::None) return;
  const bool keeps_effects = reordering == Reordering::KeepsEffects;
  const auto reads_tangent = [&](NodeIndex op) {
    return std::ranges::any_of(edges.inputs(op),
                               [&](NodeIndex input) { return graph.nodes[input].kind == JointKind::Tangent; });
  };
  const auto first = std::ranges::find_if(backward.ops, reads_tangent);
  const std::vector<NodeIndex> outputs = distinct_outputs(graph, backward);
  // A tangent that is returned unchanged counts as used at the end of the graph.
  const bool returns_tangent =
      std::ranges::any_of(outputs, [&](NodeIndex output) { return graph.nodes[output].kind == JointKind::Tangent; });
  if (first == backward.ops.end() && (!returns_tangent || keeps_effects)) return;

  Order order(graph, edges, backward);
  const std::vector<int32_t> depth =
      by == ReorderBy::Depth ? depths_of(graph, edges, backward) : std::vector<int32_t>();
  const auto place = [&](std::span<const NodeIndex> nodes) {
    by == ReorderBy::Depth ? order.place_by_depth(nodes, depth) : order.place_by_position(nodes);
  };
  // A forward draw that is recomputed replays its recorded state, so it may run at any time.
  const std::vector<char> must_run =
      keeps_effects ? calls_that_must_run(graph, edges).in_backward : std::vector<char>();
  const auto comes_early = [&](NodeIndex op) {
    return keeps_effects ? must_run[op] != 0 : by == ReorderBy::Graph && graph.nodes[op].op == "aten::copy_";
  };
  auto waiting = backward.ops.begin();  // calls before it are already placed
  for (auto op = backward.ops.begin(); op != backward.ops.end(); ++op) {
    const JointNode& node = graph.nodes[*op];
    if (op < first && !comes_early(*op)) continue;
    // Calls that read the memory before this write must run first.
    if (keeps_effects && node.writes)
      for (; waiting != op; ++waiting) place({{*waiting}});
    place({{*op}});
  }
  place(outputs);
  backward.ops = std::move(order.ops);
}

void raise_getitems(const JointGraph& graph, const JointEdges& edges, Subgraph& part) {
  // A circular doubly linked list of the inputs and calls; getitems are moved within it, from the last to the first.
  std::vector<NodeIndex> listed = part.inputs;
  listed.insert(listed.end(), part.ops.begin(), part.ops.end());
  const auto size = static_cast<int32_t>(listed.size());
  std::vector<int32_t> next(size + 1), previous(size + 1);  // slot `size` closes the circle
  for (int32_t slot = 0; slot <= size; ++slot) {
    next[slot] = slot < size ? slot + 1 : 0;
    previous[next[slot]] = slot;
  }
  std::vector<int32_t> slot_of(graph.nodes.size(), 0);
  for (int32_t slot = 0; slot < size; ++slot) slot_of[listed[slot]] = slot;
  const auto inputs = static_cast<int32_t>(part.inputs.size());
  for (int32_t slot = size - 1; slot >= inputs; --slot) {
    if (graph.nodes[listed[slot]].kind != JointKind::GetItem) continue;
    const int32_t parent = slot_of[edges.inputs(listed[slot])[0]];
    if (next[parent] == slot) continue;
    next[previous[slot]] = next[slot];
    previous[next[slot]] = previous[slot];
    next[slot] = next[parent];
    previous[slot] = parent;
    previous[next[parent]] = slot;
    next[parent] = slot;
  }
  part.ops.clear();
  for (int32_t slot = next[size]; slot != size; slot = next[slot])
    if (slot >= inputs) part.ops.push_back(listed[slot]);
}

void order_calls(Partition& partition, const JointEdges& edges, const Policy& policy, Reordering reordering) {
  const JointGraph& graph = partition.graph;
  reorder_as_autograd(graph, edges, partition.backward, policy.order.by, reordering);
  if (!policy.order.raises_getitems) return;
  raise_getitems(graph, edges, partition.forward);
  raise_getitems(graph, edges, partition.backward);
}

}  // namespace plumbline::partition
