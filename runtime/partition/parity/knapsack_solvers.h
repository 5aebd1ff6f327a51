// Further solvers of the knapsack behind a memory budget. All use the quantisation of knapsack.h except
// knapsack_in_bytes(), which never exceeds its capacity.
#pragma once

#include "runtime/partition/budget/knapsack.h"

namespace plumbline::partition {

/// PyTorch's `dp_knapsack_sliding_hirschberg`: as good as knapsack_dp(), but with two rows in memory instead of a table
/// (D. S. Hirschberg, 1975): halves the items, and splits the capacity where both halves together are worth most.
/// PyTorch gives one unit too much to the second half (its issue 197871); this solver does not.
KnapsackChoice knapsack_hirschberg(const KnapsackProblem& problem);

/// PyTorch's `dynamic_memory_budget_dp`: knapsack_dp() with the capacity, from 0.001 up to the given one, that balances
/// memory and recomputation best, see knee_point(). (Below 0.001 only the given capacity; PyTorch exceeds it.)
KnapsackChoice knapsack_knee_point(const KnapsackProblem& problem);

/// Our own solver, in exact bytes: the kept items never exceed the capacity. Optimal if bytes_per_unit() is the
/// greatest common divisor of all bytes; otherwise sizes are rounded up to whole units, and the remaining capacity is
/// filled by value per byte.
KnapsackChoice knapsack_in_bytes(std::span<const int64_t> bytes, std::span<const double> values, int64_t capacity);

/// The unit of knapsack_in_bytes(): the greatest common divisor, or a larger unit so that the capacity has at most 2^22
/// units and at most 2^27 / items. The table thus takes at most 48 MiB.
int64_t bytes_per_unit(std::span<const int64_t> bytes, int64_t capacity);

/// The effect of a choice, as fractions of keeping all items and of recomputing all of them.
struct KnapsackShares {
  double memory = 0, recomputation = 0;
};
/// The index of the choice nearest to zero memory and zero recomputation, both scaled to 0 to 1 over all choices; the
/// first among equals. -1 if all choices take the same memory or the same recomputation.
int knee_point(std::span<const KnapsackShares> choices);

/// `count` capacities from `least` to `most` in equal steps.
std::vector<double> capacities_between(double least, double most, int count);

/// The items of `size` that are not kept, ascending.
std::vector<int> items_left(const KnapsackChoice& choice, size_t size);

}  // namespace plumbline::partition
