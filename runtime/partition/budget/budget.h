// Chooses the saved values within a budget of activation memory. After `choose_saved_values_set` of the functorch
// partitioners: up to three minimum cuts, each with fewer bans on recomputation than the one before. If even the third
// cut saves more than the budget, a knapsack selects which of its banned values to keep, and a fourth cut may recompute
// the others. Budget 0 saves the inputs without a cut, unless one of them is overwritten; budget 1 is the first cut.
//
// A budget is a fraction of a range of bytes: 0 is the size of the forward's inputs, 1 the size saved by the first cut.
// Sizes are counted as in PyTorch (cut_bytes()): a view counts like a tensor with its own storage.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/budget/knapsack.h"
#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// The input of a BudgetSolver. Item i is the value candidates[i].
struct BudgetProblem {
  const JointGraph& graph;
  std::vector<NodeIndex> candidates = {};  ///< by item; largest first
  std::vector<int64_t> bytes = {};         ///< by item: cut_bytes()
  int64_t capacity_bytes = 0;              ///< the budget in bytes, rounded down, without the bytes of the inputs
  /// The same problem with weights `bytes` as fractions of the range between budgets 0 and 1, values
  /// recomputation_cost() and the budget as capacity.
  KnapsackProblem knapsack = {};
};

/// Returns the saved values by PyTorch's rules for options.budget, and appends each cut that was made to `cuts`. Uses
/// options.solver, or knapsack_dp() if that is empty. Throws InputError as min_cut() does, for a budget outside 0 to 1,
/// and for a solver that returns a duplicate or nonexistent item.
std::vector<NodeIndex> saved_within_budget(const CutInput& input, const PartitionOptions& options,
                                           std::vector<CutRecord>& cuts);

/// Returns the cost of recomputing the node: JointNode::flops, but at least 1.
double recomputation_cost(const JointNode& node);

}  // namespace plumbline::partition
