#include "runtime/partition/extract.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include "runtime/error.h"
#include "runtime/partition/joint/effects.h"
#include "runtime/partition/reorder.h"

namespace plumbline::partition {
namespace {

bool belongs_elsewhere(const JointNode& node, GraphHalf half, const HalfRules& rules) {
  return half == GraphHalf::Forward ? rules.only_in_backward(node) : rules.only_in_forward(node);
}

[[noreturn]] void refuse(const JointGraph& graph, const JointEdges& edges, const std::vector<char>& valid,
                         NodeIndex output, GraphHalf half) {
  NodeIndex lacking = output;
  for (bool further = true; further;) {
    further = false;
    for (const NodeIndex input : edges.inputs(lacking))
      if (!valid[input]) {
        lacking = input;
        further = true;
        break;
      }
  }
  const std::string where = half == GraphHalf::Forward ? "forward" : "backward";
  std::string text = "partition: the " + where + " cannot compute its output '" + graph.nodes[output].name + "'";
  if (graph.nodes[lacking].is_input())
    text += ": it needs '" + graph.nodes[lacking].name + "', which is not among the inputs of the " + where;
  else
    text += ": '" + graph.nodes[lacking].name + "' may not run there: it writes or is marked for the other half";
  throw InputError(text);
}

/// In the forward, a copy into an input, which only the backward may execute, is replaced by that input.
NodeIndex copied_into(const JointNode& node, const HalfRules& rules) {
  if (node.op != "aten::copy_" || !rules.only_in_backward(node) || node.args.empty()) return kNoNode;
  return node.args[0].kind == JointArgument::Kind::Node ? node.args[0].node : kNoNode;
}

/// By node: whether the backward uses it. A wait for a collective whose result is unused does not count as a use.
std::vector<char> used_in(const Subgraph& part, const JointGraph& graph, const JointEdges& edges) {
  std::vector<char> used(graph.nodes.size(), 0);
  for (const NodeIndex output : part.outputs)
    if (output != kNoNode) used[output] = 1;
  for (auto op = part.ops.rbegin(); op != part.ops.rend(); ++op) {
    if (!used[*op] && is_collective_wait(graph.nodes[*op])) continue;
    for (const NodeIndex input : edges.inputs(*op)) used[input] = 1;
  }
  return used;
}

std::vector<NodeIndex> joined(std::initializer_list<std::span<const NodeIndex>> parts) {
  std::vector<NodeIndex> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// The symbolic scalars to save so that the backward knows every symbol in the shapes of its inputs: first the scalars
/// that bind a symbol, then the others.
std::vector<NodeIndex> with_bindings(const JointGraph& graph, const std::vector<NodeIndex>& saved_symbols,
                                     const std::vector<NodeIndex>& saved, const std::vector<NodeIndex>& tangents) {
  std::vector<NodeIndex> binding, derived;
  std::set<std::string_view> bound;
  for (const NodeIndex node : saved_symbols) {
    const std::string& symbol = graph.nodes[node].binds;
    (symbol.empty() ? derived : binding).push_back(node);
    if (!symbol.empty()) bound.insert(symbol);
  }
  std::unordered_map<std::string_view, NodeIndex> binder;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (!graph.nodes[i].binds.empty()) binder.try_emplace(graph.nodes[i].binds, static_cast<NodeIndex>(i));
  for (const auto& values : {derived, saved, tangents})
    for (const NodeIndex node : values)
      for (const std::string& symbol : graph.nodes[node].free_symbols) {
        if (!bound.insert(symbol).second) continue;
        // A graph traced without AOTAutograd may lack the input.
        const auto found = binder.find(symbol);
        if (found != binder.end()) binding.push_back(found->second);
      }
  return joined({binding, derived});
}

}  // namespace

bool has_recompute_tags(const JointGraph& graph) { return std::ranges::any_of(graph.nodes, must_recompute); }

std::vector<NodeIndex> Partition::recomputed() const {
  std::vector<char> in_forward(graph.nodes.size(), 0);
  for (const NodeIndex op : forward.ops) in_forward[op] = 1;
  std::vector<NodeIndex> both;
  for (const NodeIndex op : backward.ops)
    if (in_forward[op]) both.push_back(op);
  std::ranges::sort(both);
  return both;
}

Subgraph extract_subgraph(const JointGraph& graph, const JointEdges& edges, const MustRun& must,
                          std::vector<NodeIndex> inputs, std::vector<NodeIndex> outputs, GraphHalf half,
                          const HalfRules& rules) {
  const auto n = static_cast<NodeIndex>(graph.nodes.size());
  std::vector<char> is_input(n, 0), valid(n, 0),
      needed = half == GraphHalf::Forward ? must.in_forward : must.in_backward;
  for (const NodeIndex input : inputs) is_input[input] = valid[input] = 1;
  for (NodeIndex i = 0; i < n; ++i) {
    const JointNode& node = graph.nodes[i];
    if (valid[i] || node.is_input() || belongs_elsewhere(node, half, rules)) continue;
    valid[i] = std::ranges::all_of(edges.inputs(i), [&](NodeIndex input) { return valid[input]; });
  }
  for (NodeIndex& output : outputs) {
    if (output == kNoNode) continue;
    if (!valid[output] && half == GraphHalf::Forward)
      if (const NodeIndex target = copied_into(graph.nodes[output], rules); target != kNoNode && valid[target])
        output = target;
    if (!valid[output]) refuse(graph, edges, valid, output, half);
    needed[output] = 1;
  }
  Subgraph part{std::move(inputs), {}, std::move(outputs)};
  for (NodeIndex i = n - 1; i >= 0; --i) {
    if (!valid[i] || is_input[i] || !needed[i]) continue;
    part.ops.push_back(i);
    for (const NodeIndex input : edges.inputs(i)) needed[input] = 1;
  }
  std::ranges::reverse(part.ops);
  return part;
}

void divide(Partition& partition, const JointEdges& edges, std::vector<NodeIndex> saved,
            std::vector<NodeIndex> saved_symbols, const Policy& policy) {
  const JointGraph& graph = partition.graph;
  const MustRun must = calls_that_must_run(graph, edges);
  const auto part = [&](std::vector<NodeIndex> inputs, std::vector<NodeIndex> outputs, GraphHalf half) {
    return extract_subgraph(graph, edges, must, std::move(inputs), std::move(outputs), half, policy.halves);
  };
  const auto primals = inputs_of_kind(graph, JointKind::Primal), tangents = inputs_of_kind(graph, JointKind::Tangent),
             forward_seeds = inputs_of_kind(graph, JointKind::ForwardSeed),
             backward_seeds = inputs_of_kind(graph, JointKind::BackwardSeed);
  const auto backward_outputs = joined({graph.backward_outputs()});

  // The extracted backward shows which values it uses; only then are the symbols to bind known.
  const Subgraph draft =
      part(joined({saved_symbols, saved, tangents, backward_seeds}), backward_outputs, GraphHalf::Backward);
  const std::vector<char> used = used_in(draft, graph, edges);
  std::erase_if(saved, [&](NodeIndex node) { return !used[node]; });
  std::erase_if(saved_symbols, [&](NodeIndex node) { return !used[node]; });
  saved_symbols = with_bindings(graph, saved_symbols, saved, tangents);
  std::ranges::stable_partition(saved, [&](NodeIndex node) { return !graph.nodes[node].no_vc_check; });

  partition.forward = part(joined({primals, forward_seeds}), joined({graph.forward_outputs(), saved, saved_symbols}),
                           GraphHalf::Forward);
  partition.backward =
      part(joined({saved_symbols, saved, tangents, backward_seeds}), backward_outputs, GraphHalf::Backward);
  partition.saved = std::move(saved);
  partition.saved_symbols = std::move(saved_symbols);
  partition.replayed.clear();
  for (const NodeIndex node : partition.recomputed())
    if (draws_random_numbers(graph.nodes[node])) partition.replayed.push_back(node);
}

Partition extract(JointGraph graph, std::vector<NodeIndex> saved, std::vector<NodeIndex> saved_symbols,
                  const Policy& policy, bool reorder) {
  Partition partition;
  partition.graph = std::move(graph);
  const JointEdges edges = edges_of(partition.graph);
  divide(partition, edges, std::move(saved), std::move(saved_symbols), policy);
  order_calls(partition, edges, policy, reorder ? Reordering::AsPyTorch : Reordering::None);
  return partition;
}

}  // namespace plumbline::partition
