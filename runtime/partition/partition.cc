#include "runtime/partition/partition.h"

#include <algorithm>
#include <utility>

#include "runtime/error.h"
#include "runtime/partition/budget/budget.h"
#include "runtime/partition/budget/memory.h"
#include "runtime/partition/budget/peak_plan.h"
#include "runtime/partition/cut/forced_saves.h"
#include "runtime/partition/cut/min_bytes.h"
#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/extract.h"
#include "runtime/partition/joint/clean.h"
#include "runtime/partition/reorder.h"

namespace plumbline::partition {
namespace {

void check(const JointGraph& graph, const PartitionOptions& options) {
  int primals = 0;
  for (const JointNode& node : graph.nodes) {
    if (node.kind == JointKind::OtherInput)
      throw InputError("partition: the input '" + node.name +
                       "' is neither a tensor nor a number of the forward (a primal), a tangent or a random seed");
    primals += node.kind == JointKind::Primal;
  }
  for (const int index : options.static_inputs)
    if (index < 0 || index >= primals)
      throw InputError("partition: static input " + std::to_string(index) +
                       " is out of range: the number of primals is " + std::to_string(primals));
  if (!(options.budget >= 0 && options.budget <= 1))
    throw InputError("partition: the budget must be between 0 and 1, not " + std::to_string(options.budget));
}

/// Makes the cut and records it.
template <class Cut>
std::vector<NodeIndex> recorded(std::vector<CutRecord>& cuts, std::vector<std::string> rules, Cut&& cut) {
  CutResult result = cut();
  cuts.push_back({std::move(rules), {}, result.saved, std::move(result.banned)});
  return std::move(result.saved);
}

std::vector<NodeIndex> choose(const CutInput& input, const PartitionOptions& options, std::vector<CutRecord>& cuts) {
  const auto by = [&](const CutRules& rules) {
    return recorded(cuts, rules.names(), [&] { return min_cut(input, rules); });
  };
  switch (options.mode) {
    case PartitionMode::Budget:
      if (options.measure == BudgetMeasure::Peak) return saved_within_peak(input, options, cuts);
      return saved_within_budget(input, options, cuts);
    case PartitionMode::Bytes:
      return recorded(cuts, {"bytes"}, [&] { return min_bytes_cut(input); });
    case PartitionMode::Aggressive:
      return by(input.policy.aggressive(input.policy.bans));
    default:
      return by(input.policy.bans);
  }
}

/// A budget that the user set in the graph overrides the option.
std::optional<double> take_budget_of_graph(const JointGraph& graph, PartitionOptions& options) {
  if (options.mode != PartitionMode::MinCut && options.mode != PartitionMode::Budget) return std::nullopt;
  for (const JointNode& node : graph.nodes)
    if (node.memory_budget) {
      options.mode = PartitionMode::Budget;
      options.budget = *node.memory_budget;
      return node.memory_budget;
    }
  return std::nullopt;
}

bool is_by_peak(const PartitionOptions& options) {
  return options.mode == PartitionMode::Budget && options.measure == BudgetMeasure::Peak;
}

/// A mode of our own, which need not reproduce PyTorch's behaviour.
bool is_own(const PartitionOptions& options) { return options.mode == PartitionMode::Bytes || is_by_peak(options); }

}  // namespace

Partition partition(JointGraph graph, const Policy& policy, const PartitionOptions& given) {
  check(graph, given);
  if (given.mode == PartitionMode::Default) return default_partition(std::move(graph), policy, given);

  PartitionOptions options = given;
  graph = remove_dead_nodes(std::move(graph)).graph;
  const MergedTags tags = is_own(options) ? MergedTags::Kept : MergedTags::Lost;
  // Merging turns a call that forward and backward each make for themselves into one call, whose result lives from the
  // one to the other. If that costs more memory than merging saves, the unmerged eager plan is used.
  std::optional<Partition> unmerged;
  if (policy.cse && is_by_peak(options) && !has_recompute_tags(graph))
    unmerged = default_partition(graph, policy, options);
  if (policy.cse) graph = merge_equal_nodes(std::move(graph), policy, tags).graph;
  const std::optional<double> budget_of_graph = take_budget_of_graph(graph, options);
  check(graph, options);
  const bool tagged = has_recompute_tags(graph);
  if (tagged) settle_recompute_tags(graph, false);
  force_saves(graph);

  Partition result;
  result.budget_of_graph = budget_of_graph;
  result.graph = std::move(graph);
  const JointEdges edges = edges_of(result.graph);
  const OpClasses ops = classify_ops(result.graph, policy);
  const NodeClasses classes = classify_nodes(result.graph, edges, policy, ops, options.static_inputs);
  if (std::ranges::find(classes.required_backward, 1) == classes.required_backward.end()) {
    for (JointNode& node : result.graph.nodes) node.recompute.reset();  // no backward to recompute for
    result = default_partition(std::move(result.graph), policy, options);
    result.budget_of_graph = budget_of_graph;
    return result;
  }

  const CutInput input{result.graph, edges, policy, ops, classes};
  std::vector<NodeIndex> saved, saved_symbols;
  for (const NodeIndex node : choose(input, options, result.cuts))
    (result.graph.nodes[node].out.kind == JointResult::Kind::Scalar ? saved_symbols : saved).push_back(node);
  divide(result, edges, std::move(saved), std::move(saved_symbols), policy);
  const bool reorders = policy.order.reorders(tagged);
  order_calls(result, edges, policy,
              is_own(options) ? Reordering::KeepsEffects
              : reorders      ? Reordering::AsPyTorch
                              : Reordering::None);
  if (unmerged && simulate_memory(*unmerged).peak < simulate_memory(result).peak) {
    unmerged->budget_of_graph = budget_of_graph;
    return *std::move(unmerged);
  }
  return result;
}

}  // namespace plumbline::partition
