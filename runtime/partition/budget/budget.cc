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

/// In PyTorch's unit and way, so that its comparisons come out the same.
double gigabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

std::vector<NodeIndex> forward_inputs(const JointGraph& graph) {
  std::vector<NodeIndex> inputs;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind == JointKind::Primal || graph.nodes[i].kind == JointKind::ForwardSeed)
      inputs.push_back(static_cast<NodeIndex>(i));
  return inputs;
}

bool is_written_afterwards(const JointGraph& graph, const std::vector<NodeIndex>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [&](NodeIndex i) { return graph.nodes[i].epilogue_mutation; });
}

int storage_of(const JointNode& node) { return node.out.kind == JointResult::Kind::Tensor ? node.out.storage : -1; }

std::vector<int> solve(const BudgetProblem& problem, const PartitionOptions& options) {
  if (options.own_solver) return options.own_solver(problem);
  switch (options.solver) {
    case KnapsackSolver::Exact:
      return knapsack_dp(problem.knapsack).kept;
    case KnapsackSolver::Greedy:
      return knapsack_greedy(problem.knapsack).kept;
    case KnapsackSolver::Hirschberg:
      return knapsack_hirschberg(problem.knapsack).kept;
    case KnapsackSolver::KneePoint:
      return knapsack_knee_point(problem.knapsack).kept;
    case KnapsackSolver::Bytes:
      return knapsack_in_bytes(problem.bytes, problem.knapsack.values, problem.capacity_bytes).kept;
  }
  PLUMBLINE_CHECK(false, "a solver without a case");
}

double checked_runtime(const JointGraph& graph, NodeIndex node, double runtime) {
  if (runtime >= 0 && !std::isinf(runtime)) return runtime;
  throw InputError("partition: node " + graph.nodes[node].name + " has a runtime of " + std::to_string(runtime) +
                   "; it must be 0 or more");
}

/// The way from the budget to the saved values of one graph.
class Budgeter {
 public:
  Budgeter(const CutInput& input, const PartitionOptions& options, std::vector<CutRecord>& cuts)
      : input_(input), options_(options), cuts_(cuts), inputs_(forward_inputs(input.graph)), problem_{input.graph} {
    inputs_bytes_ = bytes_of(input.graph, inputs_);
  }

  std::vector<NodeIndex> saved() {
    const double budget = options_.budget;
    if (budget == 0 && !(input_.policy.epilogue_mutation_infinite && is_written_afterwards(input_.graph, inputs_)))
      return inputs_;

    CutRules rules = CutRules::of(input_.policy);
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
    if (problem_.candidates.empty()) return exhausted(std::move(saved));
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

  /// How much of the way from budget 0 to budget 1 these values take.
  double share(const std::vector<NodeIndex>& saved) const {
    return (gigabytes(bytes_of(input_.graph, saved)) - gigabytes(inputs_bytes_)) / range_;
  }

  /// What the last cut may not compute again, as far as a budget may change that: nothing that shares memory with an
  /// input, or that the user wants saved.
  void make_problem(const std::vector<NodeIndex>& banned) {
    const JointGraph& graph = input_.graph;
    // PyTorch knows no storage of tuples and symbols; where one of the inputs has none, all such count as the input's.
    std::vector<char> is_inputs(graph.storage_bytes.size() + 1, 0);
    for (NodeIndex node : inputs_) is_inputs[storage_of(graph.nodes[node]) + 1] = 1;
    for (NodeIndex node : banned) {
      if (input_.classes.distance_to_backward[node] >= NodeClasses::kFar) continue;
      if (is_inputs[storage_of(graph.nodes[node]) + 1]) continue;
      const bool must_save = graph.nodes[node].recompute == CheckpointPolicy::MustSave;
      (must_save ? must_save_ : problem_.candidates).push_back(node);
    }
    std::stable_sort(problem_.candidates.begin(), problem_.candidates.end(),
                     [&](NodeIndex a, NodeIndex b) { return cut_bytes(graph.nodes[a]) > cut_bytes(graph.nodes[b]); });
    for (NodeIndex node : problem_.candidates) {
      problem_.bytes.push_back(cut_bytes(graph.nodes[node]));
      problem_.knapsack.weights.push_back(gigabytes(problem_.bytes.back()) / range_);
      problem_.knapsack.values.push_back(options_.runtime.empty()
                                             ? estimated_runtime(graph, options_, node)
                                             : checked_runtime(graph, node, options_.runtime[node]));
    }
  }

  /// Nothing is left for the knapsack to choose.
  std::vector<NodeIndex> exhausted(std::vector<NodeIndex> last) const {
    if (!input_.policy.exhausted_budget_saves_inputs) return last;
    std::vector<NodeIndex> saved = inputs_;
    saved.insert(saved.end(), must_save_.begin(), must_save_.end());
    std::sort(saved.begin(), saved.end());
    return saved;
  }

  /// By node: a candidate that the solver does not save.
  std::vector<char> given_up() const {
    std::vector<char> result(input_.graph.nodes.size(), 0);
    const KnapsackChoice choice{.value = 0, .kept = solve(problem_, options_)};
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
  std::vector<NodeIndex> must_save_;  // would be candidates, but for the user's tags
};

}  // namespace

std::vector<NodeIndex> saved_within_budget(const CutInput& input, const PartitionOptions& options,
                                           std::vector<CutRecord>& cuts) {
  if (!(options.budget >= 0 && options.budget <= 1))
    throw InputError("partition: budget " + std::to_string(options.budget) + "; it must be from 0 to 1");
  PLUMBLINE_CHECK(options.runtime.empty() || options.runtime.size() == input.graph.nodes.size(),
                  "a runtime for each node");
  return Budgeter(input, options, cuts).saved();
}

double estimated_runtime(const JointGraph& graph, const PartitionOptions& options, NodeIndex node) {
  const double runtime =
      options.estimate_runtime ? options.estimate_runtime(graph, node) : std::max(graph.nodes[node].flops, 1.0);
  return checked_runtime(graph, node, runtime);
}

}  // namespace plumbline::partition
