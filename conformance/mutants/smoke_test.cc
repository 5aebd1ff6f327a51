// The profile smoke kills most mutants: by the runs that conformance/mutants/killers.json records, which the test
// `mutants` executes.
#include "conformance/corpus/smoke.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/mutants/kill_matrix.h"
#include "conformance/mutants/killers_path.h"

namespace plumbline::conformance {
namespace {

TEST(Smoke, KillsMostMutants) {
  const Killers killers = read_killers(PLUMBLINE_KILLERS);
  std::vector<std::string> others;
  for (const auto& [mutant, runs] : killers)
    if (std::ranges::none_of(runs, [](const Killer& killer) {
          return is_smoke(killer.run.case_id, killer.run.schedule) && killer.run.ranks <= 4;
        }))
      others.push_back(mutant);
  std::string names;
  for (const std::string& mutant : others) names += " " + mutant;
  EXPECT_LT(2 * others.size(), killers.size())
      << "of " << killers.size() << " mutants these have no recorded run of smoke:" << names;
}

}  // namespace
}  // namespace plumbline::conformance
