#include "runtime/partition/budget/budget.h"

#include <algorithm>
#include <cmath>

#include "runtime/error.h"

namespace plumbline::partition {
namespace {

int64_t bytes_of(const JointGraph& graph, const std::vector<NodeIndex>& nodes) {
  int64_t sum = 0;
  for (NodeIndex node : nodes) sum += cut_bytes(graph.nodes[node]);
  return sum;
}

/// Computed in PyTorch's unit and in its way, so that comparisons give the same result.
double gigabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

std::vector<NodeIndex> forward_inputs(const JointGraph& graph) {
  std::vector<NodeIndex> inputs;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind == JointKind::Primal || graph.nodes[i].kind == JointKind::ForwardSeed)
      inputs.push_back(static_cast<NodeIndex>(i));
  return inputs;
}

int storage_of(const JointNode& node) { return node.out.kind == JointResult::Kind::Tensor ? node.out.storage : -1; }

/// Finds the saved values of one graph for a budget.
class Budgeter {
 public:
  Budgeter(const CutInput& input, const PartitionOptions& options, std::vector<CutRecord>& cuts)
      : input_(input), options_(options), cuts_(cuts), inputs_(forward_inputs(input.graph)), problem_{input.graph} {
    inputs_bytes_ = bytes_of(input.graph, inputs_);
  }

  std::vector<NodeIndex> saved() {
    const double budget = options_.budget;
    if (budget == 0 && !is_an_input_overwritten()) return inputs_;

    CutRules rules = input_.policy.bans;
    std::vector<NodeIndex> saved = cut(rules);
    if (budget == 1) return saved;
    const int64_t most_bytes = bytes_of(input_.graph, saved);
    if (most_bytes <= inputs_bytes_) return saved;
    range_ = gigabytes(most_bytes) - gigabytes(inputs_bytes_);

    rules.ban_used_far_apart = false;
    rules.ban_long_fusible_chains = false;
    rules.ban_materialized_backward = false;
    saved = cut(rules);
    if (share(saved) < budget) return saved;

    rules.ban_not_in_allowlist = false;
    saved = cut(rules);
    if (share(saved) < budget) return saved;

    make_problem(cuts_.back().banned);
    if (problem_.candidates.empty()) return input_.policy.exhausted_budget(std::move(saved), inputs_, must_save_);
    problem_.knapsack.capacity = budget;
    problem_.capacity_bytes =
        static_cast<int64_t>(std::floor(budget * static_cast<double>(most_bytes - inputs_bytes_)));
    return cut(rules, given_up());
  }

 private:
  std::vector<NodeIndex> cut(const CutRules& rules, const std::vector<char>& dont_ban = {}) {
    CutResult result = min_cut(input_, rules, dont_ban);
    cuts_.push_back(
        {.rules = rules.names(), .dont_ban = {}, .saved = result.saved, .banned = std::move(result.banned)});
    for (size_t i = 0; i < dont_ban.size(); ++i)
      if (dont_ban[i]) cuts_.back().dont_ban.push_back(static_cast<NodeIndex>(i));
    return std::move(result.saved);
  }

  bool is_an_input_overwritten() const {
    return std::ranges::any_of(inputs_, [&](NodeIndex i) { return input_.policy.overwritten(input_.ops.facts[i]); });
  }

  /// The size of these values as a fraction of the range from budget 0 to budget 1.
  double share(const std::vector<NodeIndex>& saved) const {
    return (gigabytes(bytes_of(input_.graph, saved)) - gigabytes(inputs_bytes_)) / range_;
  }

  /// Candidates are the values that the last cut may not recompute, except those that share memory with an input and
  /// those that the user wants saved.
  void make_problem(const std::vector<NodeIndex>& banned) {
    const JointGraph& graph = input_.graph;
    // PyTorch has no storage for tuples and symbols; if one of the inputs has none, all such values count as the
    // input's.
    std::vector<char> is_inputs(graph.storage_bytes.size() + 1, 0);
    for (NodeIndex node : inputs_) is_inputs[storage_of(graph.nodes[node]) + 1] = 1;
    for (NodeIndex node : banned) {
      if (input_.classes.distance_to_backward[node] >= kFarFromBackward) continue;
      if (is_inputs[storage_of(graph.nodes[node]) + 1]) continue;
      const bool must_save = graph.nodes[node].recompute == CheckpointPolicy::MustSave;
      (must_save ? must_save_ : problem_.candidates).push_back(node);
    }
    std::stable_sort(problem_.candidates.begin(), problem_.candidates.end(),
                     [&](NodeIndex a, NodeIndex b) { return cut_bytes(graph.nodes[a]) > cut_bytes(graph.nodes[b]); });
    for (NodeIndex node : problem_.candidates) {
      problem_.bytes.push_back(cut_bytes(graph.nodes[node]));
      problem_.knapsack.weights.push_back(gigabytes(problem_.bytes.back()) / range_);
      problem_.knapsack.values.push_back(recomputation_cost(graph.nodes[node]));
    }
  }

  /// By node: whether it is a candidate that the solver does not save.
  std::vector<char> given_up() const {
    std::vector<char> result(input_.graph.nodes.size(), 0);
    const KnapsackChoice choice = options_.solver.solve
                                      ? KnapsackChoice{.value = 0, .kept = options_.solver.solve(problem_)}
                                      : knapsack_dp(problem_.knapsack);
    const std::vector<char> kept = kept_items(choice, problem_.candidates.size());
    for (size_t item = 0; item < kept.size(); ++item) result[problem_.candidates[item]] = !kept[item];
    return result;
  }

  const CutInput& input_;
  const PartitionOptions& options_;
  std::vector<CutRecord>& cuts_;
  std::vector<NodeIndex> inputs_;  // of the forward
  int64_t inputs_bytes_ = 0;
  double range_ = 0;  // gigabytes between budget 0 and 1
  BudgetProblem problem_;
  std::vector<NodeIndex> must_save_;  // excluded from the candidates by the user's tags
};

}  // namespace

std::vector<NodeIndex> saved_within_budget(const CutInput& input, const PartitionOptions& options,
                                           std::vector<CutRecord>& cuts) {
  if (!(options.budget >= 0 && options.budget <= 1))
    throw InputError("partition: the budget must be between 0 and 1, not " + std::to_string(options.budget));
  return Budgeter(input, options, cuts).saved();
}

double recomputation_cost(const JointNode& node) { return std::max(node.flops, 1.0); }

}  // namespace plumbline::partition
