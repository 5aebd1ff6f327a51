// The profile smoke: quick cases, each under two schedules, chosen so that together they kill most mutants.
//
// Every case is under gpipe, because that is where conformance/mutants/killers.json records most killers, and under one
// of three others: backwards in halves, several stages a rank, another order. smoke_test.cc in conformance/mutants
// counts the mutants that these runs kill according to that file; `scripts/nightly mutants` runs them.
#pragma once

#include <string_view>
#include <vector>

namespace plumbline::conformance {

struct SmokeCase {
  std::string_view id;
  std::string_view other;  ///< its schedule besides gpipe
};

const std::vector<SmokeCase>& smoke_cases();

/// Whether the profile has a run of this case under this schedule.
bool is_smoke(std::string_view case_id, std::string_view schedule);

}  // namespace plumbline::conformance
