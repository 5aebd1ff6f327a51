// The frontier between saved memory and recomputation over all budgets. After `visualize_memory_budget_pareto` of
// PyTorch's partitioners.py.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct BudgetPoint {
  double budget = 0;                  ///< 0 to 1
  int64_t saved_bytes = 0;            ///< bytes of the saved tensors, inputs included: MemoryProfile::saved_nodes
  int64_t saved_storage = 0;          ///< bytes held for them in addition to the inputs: MemoryProfile::saved_storage
  int64_t peak = 0;                   ///< MemoryProfile::peak, in bytes
  double recomputation = 0;           ///< sum of recomputation_cost() over the recomputed calls
  std::vector<NodeIndex> saved = {};  ///< tensors, then symbols; indices into Partition::graph
};

/// Returns the budgets from 0 to 1 at which the result of partition() changes in saved storage or recomputation,
/// ascending from budget 0. Each point has the least budget with its result, found by bisection to 1/1000. Ignores
/// options.mode, options.budget and any budget set in the graph. (PyTorch plots the choice of its knapsack for every
/// budget; these points show the result of the whole partition.) Throws InputError as partition() does.
std::vector<BudgetPoint> budget_frontier(const JointGraph& graph, const Policy& policy, PartitionOptions options);

/// Returns a table with a heading and one line per point: budget, saved bytes, saved storage, peak, recomputation.
std::string frontier_text(std::span<const BudgetPoint> points);
/// Returns a plot of recomputation over saved storage, as the text of an SVG file.
std::string frontier_svg(std::span<const BudgetPoint> points);

}  // namespace plumbline::partition
