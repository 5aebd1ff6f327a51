// Tries mutants on runs until each was given away often enough.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/mutants/fault_runner.h"
#include "conformance/mutants/kill_matrix.h"
#include "conformance/mutants/mutants.h"

namespace plumbline::conformance {

struct TryOptions {
  /// Runs that give a mutant away before the rest is left untested; 0: all are tried.
  int enough = 2;
  /// Told of each mutant that is done, and of each run that does not pass without a fault.
  std::function<void(const std::string& line)> say = {};
};

/// Mutants whose name matches a shell pattern. InputError when none does.
std::vector<const Mutant*> select_mutants(const std::string& pattern);

/// For each mutant one run of every case, then a second of every case, and so on; a case that gave it away comes again
/// only after all others. A run is used only when it passes without a fault.
KillMatrix try_mutants(const std::vector<RunId>& runs, const std::vector<const Mutant*>& mutants, FaultRunner& runner,
                       const TryOptions& options);

/// Whether every mutant has two recorded killers, each of which passes without a fault and gives it away in the way
/// that is recorded. One line for each that is not so.
std::vector<std::string> recorded_problems(const Killers& killers, FaultRunner& runner);

}  // namespace plumbline::conformance
