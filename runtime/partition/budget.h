// Which values to save within a budget of activation memory. After `choose_saved_values_set` of the functorch
// partitioners: up to three cuts, each allowed to compute more again than the one before; where even the last saves
// more than the budget, a knapsack over what it still forbids to compute again, and a fourth cut without what the
// knapsack gave up.
//
// A budget is a share: 0 is what the inputs take, 1 what the first cut saves, counted as PyTorch does (cut_bytes()), so
// that a view counts like a tensor of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/knapsack.h"
#include "runtime/partition/min_cut.h"
#include "runtime/partition/partition.h"

namespace plumbline {

/// What a solver of one's own is asked (PartitionOptions::own_solver).
struct BudgetProblem {
  const JointGraph& graph;
  std::vector<NodeIndex> candidates = {};  ///< by item; the largest first
  std::vector<int64_t> bytes = {};         ///< by item
  int64_t capacity_bytes = 0;
  /// Weights are `bytes` as shares of what lies between budget 0 and 1, values the runtimes; the capacity is the
  /// budget.
  KnapsackProblem knapsack = {};
};

/// The saved values (ascending), by PyTorch's rules for options.budget; appends the cuts made on the way to `cuts`.
/// options.runtime is by node of input.graph.
/// Throws InputError as min_cut() does, for a budget outside 0 to 1, for a runtime that is negative or no number, and
/// for an own solver's items that do not exist or stand twice.
std::vector<NodeIndex> saved_within_budget(const CutInput& input, const PartitionOptions& options,
                                           std::vector<CutRecord>& cuts);

/// The same for several budgets of one graph: what does not depend on the budget is made once. options.budget is not
/// looked at; what `input` and `options` refer to must outlive it.
class BudgetPlanner {
 public:
  BudgetPlanner(const CutInput& input, const PartitionOptions& options);
  std::vector<NodeIndex> saved(double budget, std::vector<CutRecord>& cuts);

 private:
  const CutRecord& cut(const CutRules& rules, size_t stage, std::vector<CutRecord>& cuts);
  CutRecord make_cut(const CutRules& rules, const std::vector<char>& dont_ban) const;
  double share(const std::vector<NodeIndex>& saved) const;
  void make_problem(const std::vector<NodeIndex>& banned);
  std::vector<NodeIndex> exhausted(const CutRecord& last) const;
  std::vector<char> given_up() const;

  CutInput input_;
  const PartitionOptions& options_;
  std::vector<NodeIndex> inputs_;  ///< of the forward
  int64_t inputs_bytes_ = 0;
  double range_ = 0;               ///< gigabytes between budget 0 and 1
  std::vector<CutRecord> stages_;  ///< the first three cuts, as far as they were needed
  bool has_problem_ = false;
  BudgetProblem problem_;
  std::vector<NodeIndex> must_save_;  ///< would be candidates, but for the user's tags
};

/// What running the node again costs, in the options' unit. Throws InputError for what is negative or no number.
double runtime_of(const CutInput& input, const PartitionOptions& options, NodeIndex node);

}  // namespace plumbline
