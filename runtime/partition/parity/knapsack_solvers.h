// Further solvers of the knapsack behind a memory budget. knapsack_hirschberg() and knapsack_knee_point() quantise as
// knapsack_dp() does; knapsack_in_bytes() never exceeds its capacity.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/partition/budget/knapsack.h"

namespace plumbline::partition {

/// PyTorch's `dp_knapsack_sliding_hirschberg`: also finds the largest value, but with two rows in memory instead of a
/// table (D. S. Hirschberg, 1975): halves the items, and splits the capacity where both halves together are worth most.
/// PyTorch gives one unit too much to the second half (its issue 197871); this solver does not.
KnapsackChoice knapsack_hirschberg(const KnapsackProblem& problem);

/// PyTorch's `dynamic_memory_budget_dp`: tries knapsack_dp() for 100 capacities from 0.001 to problem.capacity and
/// returns the choice that knee_point() selects. Returns knapsack_dp(problem) if there is no knee, if the weights or
/// the values sum to 0, and for a capacity of at most 0.001, which PyTorch exceeds.
KnapsackChoice knapsack_knee_point(const KnapsackProblem& problem);

/// A solver that PyTorch lacks, in exact bytes: the kept items never exceed the capacity (in bytes). Optimal if
/// bytes_per_unit() is the greatest common divisor of all bytes; otherwise sizes are rounded up to whole units, and the
/// remaining capacity is filled by value per byte. A negative capacity keeps nothing. Aborts if `bytes` and `values`
/// differ in length.
KnapsackChoice knapsack_in_bytes(std::span<const int64_t> bytes, std::span<const double> values, int64_t capacity);

// Parts of these solvers, exposed for tests only.

/// Returns the unit of knapsack_in_bytes(), in bytes: the greatest common divisor, or a larger unit so that the
/// capacity has at most 2^22 units and at most 2^27 / items. The table thus takes at most 48 MiB.
int64_t bytes_per_unit(std::span<const int64_t> bytes, int64_t capacity);

/// The cost of a choice: the weights of the kept items as a fraction of all weights (memory), and the values of the
/// other items as a fraction of all values (recomputation).
struct KnapsackShares {
  double memory = 0, recomputation = 0;
};

/// Returns the index of the choice nearest to zero memory and zero recomputation, after both were scaled so that the
/// choices span 0 to 1; the first of several equally near ones. Empty if there is no choice, or if all have the same
/// memory or the same recomputation.
std::optional<int> knee_point(std::span<const KnapsackShares> choices);

/// Returns `count` (2 or more) capacities from `least` to `most` in equal steps.
std::vector<double> capacities_between(double least, double most, int count);

/// Returns those of `size` items that are not kept, ascending. Throws InputError as kept_items() does.
std::vector<int> items_left(const KnapsackChoice& choice, size_t size);

}  // namespace plumbline::partition
