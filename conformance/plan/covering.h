// A small choice of rows that together show all there is to show: most faults need one or two things to come together,
// and all pairs are far fewer than all combinations.
#pragma once

#include <vector>

namespace plumbline::conformance {

/// Chooses rows until everything that any row shows has been shown. `shows[i]` are the things that row i shows, numbers
/// from 0. Greedy (Chvatal, A Greedy Heuristic for the Set-Covering Problem, 1979): always the row that shows most of
/// what is missing; of several the one of whose group (`groups[i]`, numbers from 0) fewest were chosen, then the first.
/// Ascending, and the same for the same input.
std::vector<int> covering_rows(const std::vector<std::vector<int>>& shows, const std::vector<int>& groups);

}  // namespace plumbline::conformance
