#include "runtime/partition/budget.h"

#include <algorithm>
#include <cmath>

#include "runtime/error.h"

namespace plumbline {
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

}  // namespace

double runtime_of(const CutInput& input, const PartitionOptions& options, NodeIndex node) {
  const double runtime = !options.runtime.empty()   ? options.runtime[node]
                         : options.estimate_runtime ? options.estimate_runtime(input.graph, node)
                                                    : std::max(input.graph.nodes[node].flops, 1.0);
  if (!(runtime >= 0) || std::isinf(runtime))
    throw InputError("partition: node " + input.graph.nodes[node].name + " has a runtime of " +
                     std::to_string(runtime) + "; it must be 0 or more");
  return runtime;
}

BudgetPlanner::BudgetPlanner(const CutInput& input, const PartitionOptions& options)
    : input_(input),
      options_(options),
      inputs_(forward_inputs(input.graph)),
      inputs_bytes_(bytes_of(input.graph, inputs_)),
      problem_{.graph = input.graph} {
  PLUMBLINE_CHECK(options.runtime.empty() || options.runtime.size() == input.graph.nodes.size(),
                  "a runtime for each node");
  stages_.reserve(3);  // cut() hands out references
}

std::vector<NodeIndex> BudgetPlanner::saved(double budget, std::vector<CutRecord>& cuts) {
  if (!(budget >= 0 && budget <= 1))
    throw InputError("partition: budget " + std::to_string(budget) + "; it must be from 0 to 1");
  if (budget == 0 && !(input_.policy.epilogue_mutation_infinite && is_written_afterwards(input_.graph, inputs_)))
    return inputs_;

  const CutRules full = CutRules::of(input_.policy);
  const CutRecord& runtime_optimal = cut(full, 0, cuts);
  if (budget == 1) return runtime_optimal.saved;
  const int64_t most_bytes = bytes_of(input_.graph, runtime_optimal.saved);
  if (most_bytes <= inputs_bytes_) return runtime_optimal.saved;
  range_ = gigabytes(most_bytes) - gigabytes(inputs_bytes_);

  CutRules aggressive = full;
  aggressive.ban_used_far_apart = false;
  aggressive.ban_long_fusible_chains = false;
  aggressive.ban_materialized_backward = false;
  const CutRecord& more_aggressive = cut(aggressive, 1, cuts);
  if (share(more_aggressive.saved) < budget) return more_aggressive.saved;

  aggressive.ban_not_in_allowlist = false;
  const CutRecord& most_aggressive = cut(aggressive, 2, cuts);
  if (share(most_aggressive.saved) < budget) return most_aggressive.saved;

  const int64_t range_bytes = most_bytes - inputs_bytes_;
  if (!has_problem_) make_problem(most_aggressive.banned);
  if (problem_.candidates.empty()) return exhausted(most_aggressive);
  problem_.knapsack.capacity = budget;
  problem_.capacity_bytes = static_cast<int64_t>(std::floor(budget * static_cast<double>(range_bytes)));
  cuts.push_back(make_cut(aggressive, given_up()));
  return cuts.back().saved;
}

CutRecord BudgetPlanner::make_cut(const CutRules& rules, const std::vector<char>& dont_ban) const {
  CutResult result = min_cut(input_, rules, dont_ban);
  CutRecord record{
      .rules = rules.names(), .dont_ban = {}, .saved = std::move(result.saved), .banned = std::move(result.banned)};
  for (size_t i = 0; i < dont_ban.size(); ++i)
    if (dont_ban[i]) record.dont_ban.push_back(static_cast<NodeIndex>(i));
  return record;
}

const CutRecord& BudgetPlanner::cut(const CutRules& rules, size_t stage, std::vector<CutRecord>& cuts) {
  if (stage == stages_.size()) stages_.push_back(make_cut(rules, {}));
  cuts.push_back(stages_[stage]);
  return stages_[stage];
}

/// How much of the way from budget 0 to budget 1 these values take.
double BudgetPlanner::share(const std::vector<NodeIndex>& saved) const {
  return (gigabytes(bytes_of(input_.graph, saved)) - gigabytes(inputs_bytes_)) / range_;
}

/// What the last cut may not compute again, as far as a budget may change that: nothing that shares memory with an
/// input, or that the user wants saved.
void BudgetPlanner::make_problem(const std::vector<NodeIndex>& banned) {
  has_problem_ = true;
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
    problem_.knapsack.values.push_back(runtime_of(input_, options_, node));
  }
}

/// Nothing is left for the knapsack to choose.
std::vector<NodeIndex> BudgetPlanner::exhausted(const CutRecord& last) const {
  if (!input_.policy.exhausted_budget_saves_inputs) return last.saved;
  std::vector<NodeIndex> saved = inputs_;
  saved.insert(saved.end(), must_save_.begin(), must_save_.end());
  std::sort(saved.begin(), saved.end());
  return saved;
}

/// By node: a candidate that the solver does not save.
std::vector<char> BudgetPlanner::given_up() const {
  std::vector<char> result(input_.graph.nodes.size(), 0);
  const KnapsackChoice choice{.value = 0, .kept = solve(problem_, options_)};
  const std::vector<char> kept = kept_items(choice, problem_.candidates.size());
  for (size_t item = 0; item < kept.size(); ++item) result[problem_.candidates[item]] = !kept[item];
  return result;
}

std::vector<NodeIndex> saved_within_budget(const CutInput& input, const PartitionOptions& options,
                                           std::vector<CutRecord>& cuts) {
  return BudgetPlanner(input, options).saved(options.budget, cuts);
}

}  // namespace plumbline
