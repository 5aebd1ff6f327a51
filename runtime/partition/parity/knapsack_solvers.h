// Further solvers of the knapsack behind a memory budget, with the quantisation of knapsack.h but for
// knapsack_in_bytes(), which never exceeds its capacity.
#pragma once

#include "runtime/partition/budget/knapsack.h"

namespace plumbline::partition {

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

/// The items of `size` that are not kept, ascending.
std::vector<int> items_left(const KnapsackChoice& choice, size_t size);

}  // namespace plumbline::partition
