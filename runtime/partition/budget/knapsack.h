// The 0-1 knapsack behind a memory budget: which values to keep, of those that would be computed again otherwise.
//
// The first four are the solvers of PyTorch's `activation_memory_budget_solver`, with its quantisation: weights and
// capacity are multiplied by 10 000 and rounded, so that the choice never exceeds the capacity as rounded, but may do
// so by up to half a ten-thousandth for each item as given. knapsack_in_bytes() is our own and never does.
#pragma once

#include <cstdint>
#include <functional>
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

using KnapsackSolve = std::function<KnapsackChoice(const KnapsackProblem&)>;

/// PyTorch's `dp`, to the item: the most value, summed in float32 as PyTorch's table does. Of choices equally good the
/// one without the later items; an item that adds nothing, be it for rounding, is not kept. Takes items x capacity
/// steps and bits.
KnapsackChoice knapsack_dp(const KnapsackProblem& problem);

/// The same for many capacities, from one table.
std::vector<KnapsackChoice> knapsack_dp(const KnapsackProblem& problem, std::span<const double> capacities);

/// PyTorch's `greedy`: by value for weight, the best first, each that still fits. Items without weight come first
/// (PyTorch divides by zero there). Not quantised.
KnapsackChoice knapsack_greedy(const KnapsackProblem& problem);

/// PyTorch's `dp_knapsack_sliding_hirschberg`: as good as knapsack_dp(), in memory of two rows instead of a table (D.
/// S. Hirschberg, 1975): the items are halved, and the capacity where both halves together are worth most. PyTorch's
/// gives one unit too much to the second half (its issue 197871), this one does not.
KnapsackChoice knapsack_hirschberg(const KnapsackProblem& problem);

/// PyTorch's `dynamic_memory_budget_dp`: knapsack_dp() with the capacity, from 0.001 up to the given one, at which
/// memory and recomputation are best balanced, see knee_point(). (Below 0.001 only the given one; PyTorch exceeds it.)
KnapsackChoice knapsack_knee_point(const KnapsackProblem& problem);

/// Our own, in exact bytes: the sum of what is kept never exceeds the capacity. Optimal where bytes_per_unit() is the
/// greatest common divisor of all bytes; else sizes are rounded up to whole units, and what is left of the capacity is
/// filled by value for bytes.
KnapsackChoice knapsack_in_bytes(std::span<const int64_t> bytes, std::span<const double> values, int64_t capacity);

/// The unit in which knapsack_in_bytes() counts: the greatest common divisor, or so much that the capacity has at most
/// 2^22 units, and at most 2^27 / items. So its table takes at most 48 MiB.
int64_t bytes_per_unit(std::span<const int64_t> bytes, int64_t capacity);

/// What one choice means, as shares of keeping all items and of computing all of them again.
struct KnapsackShares {
  double memory = 0, recomputation = 0;
};
/// The index of the choice nearest to neither memory nor recomputation, both scaled to 0 to 1 over all choices; the
/// first of equal ones. -1 where all choices take the same memory or the same recomputation.
int knee_point(std::span<const KnapsackShares> choices);

/// `count` capacities from `least` to `most` in equal steps.
std::vector<double> capacities_between(double least, double most, int count);

/// By item of `size`: it is kept. Throws InputError for items that do not exist or stand twice.
std::vector<char> kept_items(const KnapsackChoice& choice, size_t size);
/// The items of `size` that are not kept, ascending.
std::vector<int> items_left(const KnapsackChoice& choice, size_t size);

}  // namespace plumbline::partition
