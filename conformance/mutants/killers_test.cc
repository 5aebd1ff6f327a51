// Each mutant against the two runs that are recorded to give it away (`plumbline mutants --matrix --record` writes
// them), and each of these runs without a fault.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <set>

#include "conformance/mutants/fault_runner.h"
#include "conformance/mutants/killers_path.h"

namespace plumbline {
namespace {

constexpr uint64_t kSeed = 1;  // the recorder's default

TEST(Killers, EveryMutantHasTwo) {
  const Killers killers = read_killers(killers_path);
  std::set<std::string> known, recorded;
  for (const Mutant& mutant : mutants()) known.insert(mutant.name);
  for (const auto& [mutant, runs] : killers) {
    recorded.insert(mutant);
    ASSERT_EQ(runs.size(), 2U) << mutant;
    EXPECT_NE(runs[0].run, runs[1].run) << mutant;
  }
  EXPECT_EQ(recorded, known);
}

TEST(Killers, EachGivesItsMutantAway) {
  at::set_num_threads(1);
  FaultRunner runner(kSeed);
  for (const auto& [name, killers] : read_killers(killers_path))
    for (const Killer& killer : killers) {
      SCOPED_TRACE(name + " in " + to_string(killer.run));
      const FaultOutcome& untouched = runner.untouched(killer.run);
      ASSERT_EQ(untouched.status, Status::Pass) << untouched.reason;
      const auto [kill, reason] = runner.kill(killer.run, find_mutant(name));
      EXPECT_EQ(kill_name(kill), kill_name(killer.by)) << reason;
    }
}

}  // namespace
}  // namespace plumbline
