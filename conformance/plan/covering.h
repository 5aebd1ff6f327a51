// A few rows that together cover everything: most faults need one or two factors to meet, and all pairs are far fewer
// than all combinations.
#pragma once

#include <vector>

namespace plumbline::conformance {

/// Chooses rows until they cover every item that any row covers. `shows[i]`: the items of row i, numbers from 0. Greedy
/// (Chvatal, A Greedy Heuristic for the Set-Covering Problem, 1979): always the row with the most uncovered items; of
/// several the one whose group (`groups[i]`, numbers from 0) has the fewest chosen rows, then the first. Ascending, and
/// deterministic.
std::vector<int> covering_rows(const std::vector<std::vector<int>>& shows, const std::vector<int>& groups);

}  // namespace plumbline::conformance
