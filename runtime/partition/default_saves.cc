#include "runtime/partition/default_saves.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/error.h"
#include "runtime/partition/extract.h"
#include "runtime/partition/joint/effects.h"

namespace plumbline::partition {
namespace {

/// Calls that only check or measure: they may run in both halves, and none of their results is saved.
constexpr std::array<std::string_view, 5> kObservers{
    "aten::_assert_scalar", "aten::_assert_async", "profiler::_record_function_enter_new",
    "profiler::_record_function_enter", "profiler::_record_function_exit"};

bool is_symbolic(const JointNode& node) { return node.out.kind == JointResult::Kind::Scalar; }

/// By node: whether it belongs to the forward, by the order and marks of the trace, or because the model ran it there.
std::vector<char> forward_by_marks(const JointGraph& graph, const JointEdges& edges) {
  size_t end = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const JointNode& node = graph.nodes[i];
    if (node.mark == JointMark::IsForward || is_forward_input(node)) end = i + 1;
  }
  std::vector<char> forward(graph.nodes.size(), 0);
  for (size_t i = 0; i < end; ++i) forward[i] = graph.nodes[i].kind != JointKind::Tangent;
  const MustRun must = calls_that_must_run(graph, edges);
  for (size_t i = end; i < graph.nodes.size(); ++i)
    forward[i] = must.in_forward[i] ||
                 (graph.nodes[i].kind == JointKind::GetItem && forward[edges.inputs(static_cast<NodeIndex>(i))[0]]);
  return forward;
}

}  // namespace

std::vector<char> forward_by_data_flow(const JointGraph& graph, const JointEdges& edges, const Policy& policy) {
  std::vector<NodeIndex> inputs;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (is_forward_input(graph.nodes[i])) inputs.push_back(static_cast<NodeIndex>(i));
  std::vector<NodeIndex> outputs(graph.forward_outputs().begin(), graph.forward_outputs().end());
  const Subgraph part = extract_subgraph(graph, edges, calls_that_must_run(graph, edges), std::move(inputs),
                                         std::move(outputs), GraphHalf::Forward, policy.halves);
  std::vector<char> forward(graph.nodes.size(), 0);
  for (const NodeIndex input : part.inputs) forward[input] = 1;
  for (const NodeIndex op : part.ops) forward[op] = 1;
  return forward;
}

void DefaultSaver::save_parts(NodeIndex tuple) {
  for (const NodeIndex user : edges_.users(tuple))
    if (graph_.nodes[user].out.kind == JointResult::Kind::Tuple)
      save_parts(user);
    else
      save(user);
}

void DefaultSaver::save_symbol(NodeIndex node) {
  const auto users = edges_.users(node);
  const bool only_asserted =
      graph_.nodes[node].out.dtype == types::Dtype::Bool && !users.empty() && !edges_.is_output[node] &&
      std::ranges::all_of(users, [&](NodeIndex user) { return graph_.nodes[user].op == "aten::_assert_scalar"; });
  if (!only_asserted) list(node, saved.symbols);
}

bool DefaultSaver::save_its_sizes_alone(NodeIndex node) {
  if (edges_.is_output[node]) return false;
  const auto users = edges_.users(node);
  const auto outside = [&](NodeIndex user) { return !forward_[user]; };
  for (const NodeIndex user : users)
    if (outside(user) && !is_symbolic(graph_.nodes[user])) return false;
  for (const NodeIndex user : users)
    if (outside(user)) save_symbol(user);
  return true;
}

bool DefaultSaver::is_taken_apart(NodeIndex node) const {
  const auto users = edges_.users(node);
  return !users.empty() && !edges_.is_output[node] &&
         std::ranges::all_of(users, [&](NodeIndex user) { return graph_.nodes[user].kind == JointKind::GetItem; });
}

void refuse_result(const JointNode& node) {
  throw InputError("partition: the result of '" + node.name + "' (" + node.op +
                   ") is neither a tensor nor a tuple used only by getitems, so it cannot be saved");
}

SavedValues rules::save_by_marks(const JointGraph& graph, const JointEdges& edges, const Policy& policy, bool tagged) {
  const bool marked =
      std::ranges::any_of(graph.nodes, [](const JointNode& node) { return node.mark != JointMark::None; });
  const std::vector<char> forward =
      marked ? forward_by_marks(graph, edges) : forward_by_data_flow(graph, edges, policy);
  DefaultSaver saver(graph, edges, forward);
  for (NodeIndex i = 0; i < static_cast<NodeIndex>(graph.nodes.size()); ++i) {
    if (!forward[i]) continue;
    const JointNode& node = graph.nodes[i];
    if (std::ranges::find(kObservers, node.op) != kObservers.end() || node.out.kind == JointResult::Kind::None)
      continue;
    if (is_symbolic(node)) {
      saver.save_symbol(i);
    } else if (saver.is_taken_apart(i)) {
      continue;
    } else if (node.recompute == CheckpointPolicy::MustSave) {
      saver.save(i);
    } else if (has_effects(node) && !is_collective_wait(node)) {
      if (tagged)
        throw InputError("partition: the graph has recompute tags, and '" + node.name + "' (" + node.op +
                         ") has effects, which must not be repeated; remove the tags or partition by min-cut");
      saver.save(i);
    } else if (!node.is_input() && node.out.kind != JointResult::Kind::Tensor) {
      if (edges.is_output[i] || !edges.users(i).empty()) refuse_result(node);
    } else if (!saver.save_its_sizes_alone(i) && !must_recompute(node)) {
      saver.save(i);
    }
  }
  return std::move(saver.saved);
}

}  // namespace plumbline::partition
