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

/// What running the node again costs: options.estimate_runtime, or its FLOPs, at least 1. options.runtime is not looked
/// at. Throws InputError for what is negative or no number.
double estimated_runtime(const JointGraph& graph, const PartitionOptions& options, NodeIndex node);

}  // namespace plumbline::partition
