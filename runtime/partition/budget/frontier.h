// The frontier between saved memory and recomputation time over all budgets. After `visualize_memory_budget_pareto` of
// PyTorch's partitioners.py.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct BudgetPoint {
  double budget = 0;
  int64_t saved_bytes = 0;    ///< of the saved values as tensors, inputs included; like MemoryProfile::saved_nodes
  int64_t saved_storage = 0;  ///< actually held for them: MemoryProfile::saved_storage
  int64_t peak = 0;           ///< simulated, over forward and backward
  double recomputation = 0;   ///< recomputation_cost() of the recomputed calls
  std::vector<NodeIndex> saved = {};  ///< in the graph after clean-up
};

/// The budgets from 0 to 1 at which the result of partition() changes in saved storage or recomputation: each point
/// with the least budget that yields it, found by bisection to 1/1000; ascending. Ignores options.mode, options.budget
/// and any budget set in the graph. (PyTorch plots the choice of its knapsack for every budget; these points are what
/// partitions by those budgets actually save.) Throws InputError as partition() does.
std::vector<BudgetPoint> budget_frontier(const JointGraph& graph, const Policy& policy, PartitionOptions options);

/// One line per point: budget, saved bytes, their storage, peak, recomputation.
std::string frontier_text(std::span<const BudgetPoint> points);
/// Recomputation over saved storage, as an SVG file.
std::string frontier_svg(std::span<const BudgetPoint> points);

}  // namespace plumbline::partition
