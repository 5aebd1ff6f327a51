// The 0-1 knapsack behind a memory budget: which of the values that would otherwise be recomputed to keep.
//
// Implements the two solvers of PyTorch's `activation_memory_budget_solver` that budgets use by default (dp) and in
// plans by peak (greedy); others are in parity/knapsack_solvers.h. Uses PyTorch's quantisation: weights and capacity
// are multiplied by 10 000 and rounded. The choice never exceeds the rounded capacity, but may exceed the given one by
// up to half a ten-thousandth per item.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::partition {

/// Items are identified by their index.
struct KnapsackProblem {
  std::vector<double> weights;  ///< capacity that keeping the item takes; 0 or more
  std::vector<double> values;   ///< recomputation time that keeping the item saves; 0 or more
  double capacity = 0;
};

struct KnapsackChoice {
  double value = 0;            ///< total of the kept items
  std::vector<int> kept = {};  ///< ascending

  bool operator==(const KnapsackChoice&) const = default;
};

/// PyTorch's `dp`, reproduced item for item: maximises the value, summed in float32 as in PyTorch's table. Among
/// equally good choices it takes the one without the later items; an item that does not raise the sum, even if only by
/// rounding, is not kept. Needs items x capacity steps and bits.
KnapsackChoice knapsack_dp(const KnapsackProblem& problem);

/// The same for many capacities from one table.
std::vector<KnapsackChoice> knapsack_dp(const KnapsackProblem& problem, std::span<const double> capacities);

/// PyTorch's `greedy`: takes items by value per weight, best first, as long as they fit. Items of weight 0 come first
/// (PyTorch divides by zero there). Not quantised.
KnapsackChoice knapsack_greedy(const KnapsackProblem& problem);

/// By item of `size`: whether it is kept. Throws InputError for duplicate or nonexistent items.
std::vector<char> kept_items(const KnapsackChoice& choice, size_t size);
}  // namespace plumbline::partition
