// The 0-1 knapsack behind a memory budget: selects the values to keep; the others are recomputed.
//
// Two solvers of PyTorch's `activation_memory_budget_solver`: dp is the default of budgets, greedy is used in plans by
// peak (peak_plan.h). The others are in parity/knapsack_solvers.h. dp uses PyTorch's quantisation: weights and capacity
// are multiplied by 10 000 and rounded. Its choice never exceeds the rounded capacity, but may exceed the given one by
// half a ten-thousandth for each kept item and one half more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::partition {

/// Items are identified by their index. Every solver aborts if the two vectors differ in length or the capacity is
/// negative.
struct KnapsackProblem {
  std::vector<double> weights;  ///< by item: memory that keeping it takes, as a fraction of a budget's range; 0 or more
  std::vector<double> values;   ///< by item: recomputation that keeping it avoids, in FLOPs; 0 or more
  double capacity = 0;          ///< in the unit of `weights`
};

struct KnapsackChoice {
  double value = 0;            ///< sum of the values of the kept items
  std::vector<int> kept = {};  ///< items, ascending

  bool operator==(const KnapsackChoice&) const = default;
};

/// PyTorch's `dp`, reproduced item for item: maximises the value, summed in float32 as in PyTorch's table. Among
/// equally good choices, later items are left out; an item is also left out if rounding hides its value in the sum.
/// Time and bits of memory: items x quantised capacity.
KnapsackChoice knapsack_dp(const KnapsackProblem& problem);

/// Returns knapsack_dp() for each of `capacities`, from one table; problem.capacity is checked, but not used. Aborts if
/// one of `capacities` is negative.
std::vector<KnapsackChoice> knapsack_dp(const KnapsackProblem& problem, std::span<const double> capacities);

/// PyTorch's `greedy`: visits the items by value per weight, best first, and keeps each item that still fits. Items of
/// weight 0 come first (PyTorch divides by zero there). Not quantised.
KnapsackChoice knapsack_greedy(const KnapsackProblem& problem);

/// Returns a flag for each of `size` items: whether it is kept. Throws InputError if `choice` has a duplicate or an
/// item outside 0 to size - 1.
std::vector<char> kept_items(const KnapsackChoice& choice, size_t size);
}  // namespace plumbline::partition
