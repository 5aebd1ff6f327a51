// Chooses the saved values within a budget of activation memory. After `choose_saved_values_set` of the functorch
// partitioners: up to three cuts, each allowed to recompute more than the one before. If even the last one saves more
// than the budget, a knapsack over the values that it may not recompute selects which to keep, and a fourth cut may
// recompute the others.
//
// A budget is a fraction: 0 is the size of the inputs, 1 the size saved by the first cut, counted as PyTorch does
// (cut_bytes()): a view counts like a tensor with its own storage.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/budget/knapsack.h"
#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// The input of a BudgetSolver.
struct BudgetProblem {
  const JointGraph& graph;
  std::vector<NodeIndex> candidates = {};  ///< by item; largest first
  std::vector<int64_t> bytes = {};         ///< by item
  int64_t capacity_bytes = 0;
  /// Weights: `bytes` as fractions of the range between budget 0 and 1. Values: recomputation_cost(). Capacity: the
  /// budget.
  KnapsackProblem knapsack = {};
};

/// The saved values (ascending) by PyTorch's rules for options.budget; appends the cuts made on the way to `cuts`.
/// Throws InputError as min_cut() does, for a budget outside 0 to 1, and for a solver that returns a duplicate or
/// nonexistent item.
std::vector<NodeIndex> saved_within_budget(const CutInput& input, const PartitionOptions& options,
                                           std::vector<CutRecord>& cuts);

/// The cost of recomputing the node: its FLOPs, at least 1.
double recomputation_cost(const JointNode& node);

}  // namespace plumbline::partition
