// Which values to save within a budget of activation memory. After `choose_saved_values_set` of the functorch
// partitioners (up to four cuts and a knapsack).
#pragma once

#include <vector>

#include "runtime/partition/min_cut.h"
#include "runtime/partition/partition.h"

namespace plumbline {

/// The saved values (ascending), by PyTorch's rules for options.budget; appends the cuts made on the way to `cuts`.
/// Throws InputError as min_cut() does, and for a budget outside 0 to 1.
std::vector<NodeIndex> saved_within_budget(const CutInput& input, const PartitionOptions& options,
                                           std::vector<CutRecord>& cuts);

}  // namespace plumbline
