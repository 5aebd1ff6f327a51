// Injects mutants into runs until enough runs have killed each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/mutants/fault_runner.h"
#include "conformance/mutants/kill_matrix.h"
#include "conformance/mutants/mutants.h"

namespace plumbline::conformance {

struct TryOptions {
  /// The number of runs that must kill a mutant before the rest is left untested; 0: all are tried.
  int enough = 2;
  /// Receives a line for each finished mutant, and for each run that fails without a fault.
  std::function<void(const std::string& line)> say = {};
};

/// Mutants whose name matches a shell pattern. Throws InputError if none does.
std::vector<const Mutant*> select_mutants(const std::string& pattern);

/// Tries each mutant on one run of every case, then on a second run of every case, and so on; a case that killed it is
/// tried again only after all others. Runs that fail without a fault are skipped.
KillMatrix try_mutants(const std::vector<RunId>& runs, const std::vector<const Mutant*>& mutants, FaultRunner& runner,
                       const TryOptions& options);

/// Checks that every mutant has two recorded killers, each of which passes without a fault and kills the mutant in the
/// recorded way. Returns one line for each violation.
std::vector<std::string> recorded_problems(const Killers& killers, FaultRunner& runner);

}  // namespace plumbline::conformance
