// Cuts a sequence of costs into parts that are as equal as possible. Plain arithmetic: no graph, no torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::split {

/// Cuts `costs` into `stages` contiguous parts, none of them empty, and returns where the second and later parts begin,
/// ascending. A part may begin at position p (before costs[p]) if legal[p] is not 0; `legal` has costs.size() + 1
/// entries, of which the first and the last are ignored.
///
/// Of all such partitions it returns one with the least maximal part; of those, with the least sum of squares; of
/// those, the one whose last part begins latest, then the last but one, and so on (work without a cost stays with the
/// work before it). Costs are in any unit, finite and not negative; sums are of doubles, so whole numbers below 2^53
/// are exact.
///
/// The least maximum by dynamic programming over prefix sums, O(stages * n); the least sum of squares under that
/// maximum by divide and conquer over monotone minima (Galil and Park, "Dynamic programming with convexity, concavity
/// and sparsity", 1992), O(stages * n log n), n the number of legal positions.
///
/// Throws InputError: a cost that is negative or not finite, fewer than 1 stage, or more stages than legal positions
/// allow (with the largest possible number).
std::vector<int32_t> optimal_cuts(std::span<const double> costs, std::span<const char> legal, int stages);

}  // namespace plumbline::split
