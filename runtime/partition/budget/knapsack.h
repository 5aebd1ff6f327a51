// The 0-1 knapsack behind a memory budget: which values to keep, of those that would be computed again otherwise.
//
// By the solvers of PyTorch's `activation_memory_budget_solver` that a budget uses by default, and by its peak; further
// ones are in parity/knapsack_solvers.h. With PyTorch's quantisation: weights and capacity are multiplied by 10 000 and
// rounded, so that the choice never exceeds the capacity as rounded, but may do so by up to half a ten-thousandth for
// each item as given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::partition {

/// Items by their index.
struct KnapsackProblem {
  std::vector<double> weights;  ///< what keeping one takes of the capacity; 0 or more
  std::vector<double> values;   ///< what keeping one spares: the time to compute it again; 0 or more
  double capacity = 0;
};

struct KnapsackChoice {
  double value = 0;            ///< of the items kept together
  std::vector<int> kept = {};  ///< ascending

  bool operator==(const KnapsackChoice&) const = default;
};

/// PyTorch's `dp`, to the item: the most value, summed in float32 as PyTorch's table does. Of choices equally good the
/// one without the later items; an item that adds nothing, be it for rounding, is not kept. Takes items x capacity
/// steps and bits.
KnapsackChoice knapsack_dp(const KnapsackProblem& problem);

/// The same for many capacities, from one table.
std::vector<KnapsackChoice> knapsack_dp(const KnapsackProblem& problem, std::span<const double> capacities);

/// PyTorch's `greedy`: by value for weight, the best first, each that still fits. Items without weight come first
/// (PyTorch divides by zero there). Not quantised.
KnapsackChoice knapsack_greedy(const KnapsackProblem& problem);

/// By item of `size`: it is kept. Throws InputError for items that do not exist or stand twice.
std::vector<char> kept_items(const KnapsackChoice& choice, size_t size);
}  // namespace plumbline::partition
