// A small set of rows that together show every pair of values of any two factors (a covering array of strength two):
// most faults need one or two things to come together, and all pairs are far fewer than all combinations.
//
// Built greedily, row by row, in the manner of AETG (Cohen, Dalal, Fredman, Patton, IEEE TSE 23(7), 1997), with the
// combinations that are impossible left out.
#pragma once

#include <functional>
#include <vector>

namespace plumbline {

/// One value for each factor, counted from 0.
using CoveringRow = std::vector<int>;

/// Rows that `possible` allows and that hold every pair which any possible row holds. `sizes` has the number of values
/// of each factor, at least two factors, the two largest first: each possible pair of theirs needs a row of its own,
/// and these rows are mostly all there are. Sorted, and the same for the same input. Looks at every combination of
/// factors 2 and up for each pair of the first two, so those should be few.
std::vector<CoveringRow> covering_rows(const std::vector<int>& sizes,
                                       const std::function<bool(const CoveringRow&)>& possible);

}  // namespace plumbline
