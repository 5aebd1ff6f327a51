// What each budget buys: the frontier between memory saved and time to compute again, over all budgets. After
// `visualize_memory_budget_pareto` of the functorch partitioners.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/partition/budget.h"

namespace plumbline {

struct BudgetPoint {
  double budget = 0;
  int64_t saved_bytes = 0;    ///< of all saved values as tensors (cut_bytes()), inputs among them
  int64_t saved_storage = 0;  ///< of the storages behind them that no input has, each once: what is really held
  double recomputation = 0;   ///< runtime of the calls that are made again
  std::vector<NodeIndex> saved = {};
};

/// The points between budget 0 and 1 where the saved values change, each with the least budget that buys them, found by
/// bisection to 1/1000; ascending. options.budget is not looked at. (PyTorch draws the knapsack's choice for every
/// budget; this is what a partition by that budget really saves.) Throws InputError as saved_within_budget() does.
std::vector<BudgetPoint> budget_frontier(const CutInput& input, const PartitionOptions& options);

/// The forward's nodes that the backward runs again when `saved` is saved, ascending: what it needs, back to what is
/// saved or an input. (Without clean-up: of a call of several results also the results that nobody reads.)
std::vector<NodeIndex> computed_again(const CutInput& input, std::span<const NodeIndex> saved);

/// A line for each point: budget, saved bytes, their storage, recomputation.
std::string frontier_text(std::span<const BudgetPoint> points);
/// Recomputation over saved storage, as an SVG file.
std::string frontier_svg(std::span<const BudgetPoint> points);

}  // namespace plumbline
