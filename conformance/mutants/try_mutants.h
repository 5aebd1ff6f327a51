// Injects mutants into runs until enough runs have killed every mutant.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/mutants/fault_runner.h"
#include "conformance/mutants/kill_matrix.h"
#include "conformance/mutants/mutants.h"

namespace plumbline::conformance {

struct TryOptions {
  /// The number of runs that must kill a mutant before its other runs are left untested; 0: every run is tried.
  int enough = 2;
  /// Receives a line for each finished mutant, and for each run that does not pass without a fault.
  std::function<void(const std::string& line)> say = {};
};

/// Returns the mutants whose name matches one of the shell patterns, separated by commas, in their order. Throws
/// InputError for a pattern that matches none.
std::vector<const Mutant*> select_mutants(const std::string& patterns);

/// Tries each mutant on the first run of every case, then on the second run of every case, and so on; with
/// TryOptions::enough, a case that killed the mutant is tried again only after all other runs. Runs that do not pass
/// without a fault are left untested and recorded in KillMatrix::broken.
KillMatrix try_mutants(const std::vector<RunId>& runs, const std::vector<const Mutant*>& mutants, FaultRunner& runner,
                       const TryOptions& options);

/// Checks that every mutant has exactly two different recorded killers, that `killers` names no unknown mutant, and
/// that `each` (1 or 2) of the two runs pass without a fault and kill the mutant in the recorded way. If `each` is 1,
/// the run is the first for one mutant, the second for the next. Returns one line for each violation.
std::vector<std::string> recorded_problems(const Killers& killers, FaultRunner& runner, int each);

}  // namespace plumbline::conformance
