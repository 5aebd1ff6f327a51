#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/error.h"
#include "runtime/partition/cut/forced_saves.h"
#include "runtime/partition/extract.h"
#include "runtime/partition/joint/clean.h"
#include "runtime/partition/joint/effects.h"
#include "runtime/partition/reorder.h"

namespace plumbline::partition {
namespace {

/// Calls that only check or only measure: they may run in both halves, and there is nothing to save.
constexpr std::array<std::string_view, 5> kObservers{
    "aten::_assert_scalar", "aten::_assert_async", "profiler::_record_function_enter_new",
    "profiler::_record_function_enter", "profiler::_record_function_exit"};

bool is_symbolic(const JointNode& node) { return node.out.kind == JointResult::Kind::Scalar; }

/// By node: it belongs to the forward, by the order of the trace and its marks, or because the model ran it there.
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

/// By node: the forward's outputs need it, or it is an input of the forward.
std::vector<char> forward_by_data_flow(const JointGraph& graph, const JointEdges& edges, const Policy& policy) {
  std::vector<NodeIndex> inputs;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (is_forward_input(graph.nodes[i])) inputs.push_back(static_cast<NodeIndex>(i));
  std::vector<NodeIndex> outputs(graph.forward_outputs().begin(), graph.forward_outputs().end());
  const Subgraph part = extract_subgraph(graph, edges, calls_that_must_run(graph, edges), std::move(inputs),
                                         std::move(outputs), GraphHalf::Forward, policy.honours_marks);
  std::vector<char> forward(graph.nodes.size(), 0);
  for (const NodeIndex input : part.inputs) forward[input] = 1;
  for (const NodeIndex op : part.ops) forward[op] = 1;
  return forward;
}

/// What to save of a forward; each once, in the order in which it is met.
class Saver {
 public:
  Saver(const JointGraph& graph, const JointEdges& edges, const std::vector<char>& forward)
      : graph_(graph), edges_(edges), forward_(forward), listed_(graph.nodes.size(), 0) {}

  void save(NodeIndex node) { list(node, saved); }

  /// What getitems take out of a tuple, also out of tuples within.
  void save_parts(NodeIndex tuple) {
    for (const NodeIndex user : edges_.users(tuple))
      if (graph_.nodes[user].out.kind == JointResult::Kind::Tuple)
        save_parts(user);
      else
        save(user);
  }

  void save_symbol(NodeIndex node) {
    const auto users = edges_.users(node);
    const bool only_asserted =
        graph_.nodes[node].out.dtype == "bool" && !users.empty() && !edges_.is_output[node] &&
        std::ranges::all_of(users, [&](NodeIndex user) { return graph_.nodes[user].op == "aten::_assert_scalar"; });
    if (!only_asserted) list(node, saved_symbols);
  }

  /// A value of which the backward only asks for sizes and strides is not saved, those are.
  /// False: the value itself is needed.
  bool save_its_sizes_alone(NodeIndex node) {
    if (edges_.is_output[node]) return false;
    const auto users = edges_.users(node);
    const auto outside = [&](NodeIndex user) { return !forward_[user]; };
    for (const NodeIndex user : users)
      if (outside(user) && !is_symbolic(graph_.nodes[user])) return false;
    for (const NodeIndex user : users)
      if (outside(user)) save_symbol(user);
    return true;
  }

  /// Somebody uses it, and all who do are getitems.
  bool is_taken_apart(NodeIndex node) const {
    const auto users = edges_.users(node);
    return !users.empty() && !edges_.is_output[node] &&
           std::ranges::all_of(users, [&](NodeIndex user) { return graph_.nodes[user].kind == JointKind::GetItem; });
  }

  std::vector<NodeIndex> saved, saved_symbols;

 private:
  void list(NodeIndex node, std::vector<NodeIndex>& where) {
    if (!std::exchange(listed_[node], 1)) where.push_back(node);
  }

  const JointGraph& graph_;
  const JointEdges& edges_;
  const std::vector<char>& forward_;
  std::vector<char> listed_;
};

[[noreturn]] void refuse_result(const JointNode& node) {
  throw InputError("partition: the result of '" + node.name + "' (" + node.op +
                   ") is neither a tensor nor a tuple that getitems take apart, so that it cannot be saved");
}

/// The seed's rules.
void choose_by_data_flow(const JointGraph& graph, const JointEdges& edges, const std::vector<char>& forward,
                         Saver& saver) {
  for (NodeIndex i = 0; i < static_cast<NodeIndex>(graph.nodes.size()); ++i) {
    if (!forward[i]) continue;
    const JointNode& node = graph.nodes[i];
    if (is_symbolic(node)) {
      saver.save_symbol(i);
    } else if (!node.is_input() && node.out.kind != JointResult::Kind::Tensor) {
      if (node.out.kind == JointResult::Kind::None) continue;
      if (edges.is_output[i] || !(edges.users(i).empty() || saver.is_taken_apart(i))) refuse_result(node);
      saver.save_parts(i);
    } else if (!saver.save_its_sizes_alone(i)) {
      saver.save(i);
    }
  }
}

/// The newer rules: tags of the user and calls with effects have a say.
void choose_by_marks(const JointGraph& graph, const JointEdges& edges, const std::vector<char>& forward, bool tagged,
                     Saver& saver) {
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
        throw InputError("partition: the graph has tags that ask to recompute, and '" + node.name + "' (" + node.op +
                         ") has effects, which must not be repeated; remove the tags or partition by min-cut");
      saver.save(i);
    } else if (!node.is_input() && node.out.kind != JointResult::Kind::Tensor) {
      if (edges.is_output[i] || !edges.users(i).empty()) refuse_result(node);
    } else if (!saver.save_its_sizes_alone(i) && !must_recompute(node)) {
      saver.save(i);
    }
  }
}

/// Nothing writes, apart from copies into inputs.
bool is_functional(const JointGraph& graph) {
  return std::ranges::none_of(graph.nodes, [&](const JointNode& node) {
    if (node.op == "aten::copy_" || node.op == "aten::set_")
      return node.args.empty() || node.args[0].kind != JointArgument::Kind::Node ||
             !graph.nodes[node.args[0].node].is_input();
    return node.writes;
  });
}

/// Waiting for a collective is an effect, but not where nobody uses the result. What only such calls need goes as well.
/// `must_run`: by node, of this half.
void remove_dead_collectives(const JointGraph& graph, const JointEdges& edges, const std::vector<char>& must_run,
                             Subgraph& part) {
  std::vector<char> needed(graph.nodes.size(), 0);
  for (const NodeIndex output : part.outputs)
    if (output != kNoNode) needed[output] = 1;
  std::vector<NodeIndex> kept;
  for (auto op = part.ops.rbegin(); op != part.ops.rend(); ++op) {
    if (!needed[*op] && (is_collective(graph.nodes[*op]) || !must_run[*op])) continue;
    kept.push_back(*op);
    for (const NodeIndex input : edges.inputs(*op)) needed[input] = 1;
  }
  std::ranges::reverse(kept);
  part.ops = std::move(kept);
}

}  // namespace

Partition default_partition(JointGraph graph, const Policy& policy, const PartitionOptions& options) {
  const bool tagged = has_recompute_tags(graph);
  const bool marked =
      std::ranges::any_of(graph.nodes, [](const JointNode& node) { return node.mark != JointMark::None; });
  const bool by_data_flow = policy.default_by_data_flow || !marked;
  if (tagged && (policy.default_with_tags_is_min_cut || !is_functional(graph))) {
    PartitionOptions min_cut = options;
    min_cut.mode = PartitionMode::MinCut;
    return partition(std::move(graph), policy, min_cut);
  }
  if (tagged) settle_recompute_tags(graph, true);
  force_saves(graph);

  Partition partition;
  partition.graph = std::move(graph);
  const JointEdges edges = edges_of(partition.graph);
  const std::vector<char> forward =
      by_data_flow ? forward_by_data_flow(partition.graph, edges, policy) : forward_by_marks(partition.graph, edges);
  Saver saver(partition.graph, edges, forward);
  if (policy.default_by_data_flow)
    choose_by_data_flow(partition.graph, edges, forward, saver);
  else
    choose_by_marks(partition.graph, edges, forward, tagged, saver);
  divide(partition, edges, std::move(saver.saved), std::move(saver.saved_symbols), policy);
  const MustRun must = calls_that_must_run(partition.graph, edges);
  remove_dead_collectives(partition.graph, edges, must.in_forward, partition.forward);
  remove_dead_collectives(partition.graph, edges, must.in_backward, partition.backward);
  order_calls(partition, edges, policy, tagged ? Reordering::AsPyTorch : Reordering::None);
  return partition;
}

}  // namespace plumbline::partition
