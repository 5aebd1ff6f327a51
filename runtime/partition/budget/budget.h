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

#include "runtime/partition/budget/knapsack.h"
#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// What a BudgetSolver is asked.
struct BudgetProblem {
  const JointGraph& graph;
  std::vector<NodeIndex> candidates = {};  ///< by item; the largest first
  std::vector<int64_t> bytes = {};         ///< by item
  int64_t capacity_bytes = 0;
  /// Weights are `bytes` as shares of what lies between budget 0 and 1, values recomputation_cost(); the capacity is
  /// the budget.
  KnapsackProblem knapsack = {};
};

/// The saved values (ascending), by PyTorch's rules for options.budget; appends the cuts made on the way to `cuts`.
/// Throws InputError as min_cut() does, for a budget outside 0 to 1, and for a solver's items that do not exist or
/// stand twice.
std::vector<NodeIndex> saved_within_budget(const CutInput& input, const PartitionOptions& options,
                                           std::vector<CutRecord>& cuts);

/// What computing the node again costs: its FLOPs, at least 1.
double recomputation_cost(const JointNode& node);

}  // namespace plumbline::partition
