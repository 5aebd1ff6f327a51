// Cuts a sequence of costs into parts that are as equal as possible. Plain arithmetic without graphs or torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumbline::split {

/// Cuts `costs` into `stages` contiguous parts, none of them empty. Returns the positions at which the second and later
/// parts begin, ascending. A part may begin at position p (before costs[p]) if legal[p] is not 0; `legal` has
/// costs.size() + 1 entries, of which the first and the last are ignored.
///
/// Among all such partitions, those with the least maximal part are best; among these, those with the least sum of
/// squares; among these, the one whose last part begins latest, then whose last but one begins latest, and so on (work
/// without cost stays with the work before it). Costs are in any unit, finite and not negative. They are added as
/// doubles, so whole numbers below 2^53 are exact.
///
/// Finds the least maximum by dynamic programming over prefix sums in O(stages * n), and the least sum of squares under
/// that maximum by divide and conquer over monotone minima (Galil and Park, "Dynamic programming with convexity,
/// concavity and sparsity", 1992) in O(stages * n log n), where n is the number of legal positions.
///
/// Throws InputError for a cost that is negative or not finite, for fewer than 1 stage, and for more stages than the
/// legal positions allow (naming the largest possible number).
std::vector<int32_t> optimal_cuts(std::span<const double> costs, std::span<const char> legal, int stages);

}  // namespace plumbline::split
