// What each budget buys: the frontier between memory saved and time to compute again, over all budgets. After
// `visualize_memory_budget_pareto` of PyTorch's partitioners.py.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct BudgetPoint {
  double budget = 0;
  int64_t saved_bytes = 0;    ///< of the saved values as tensors, inputs among them; as MemoryProfile::saved_nodes
  int64_t saved_storage = 0;  ///< really held for them: MemoryProfile::saved_storage
  int64_t peak = 0;           ///< simulated, of forward and backward
  double recomputation = 0;   ///< recomputation_cost() of the calls that are made again
  std::vector<NodeIndex> saved = {};  ///< in the graph after clean-up
};

/// The points between budget 0 and 1 where what partition() gives changes, in saved storage or recomputation, each with
/// the least budget that buys it, found by bisection to 1/1000; ascending. Neither options.mode and options.budget
/// nor a budget that the graph itself asks for are looked at. (PyTorch draws what its knapsack chooses for every
/// budget; this is what a partition by that budget really saves.) Throws InputError as partition() does.
std::vector<BudgetPoint> budget_frontier(const JointGraph& graph, const Policy& policy, PartitionOptions options);

/// A line for each point: budget, saved bytes, their storage, peak, recomputation.
std::string frontier_text(std::span<const BudgetPoint> points);
/// Recomputation over saved storage, as an SVG file.
std::string frontier_svg(std::span<const BudgetPoint> points);

}  // namespace plumbline::partition
