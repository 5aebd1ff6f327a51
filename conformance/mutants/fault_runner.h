// Executes cases with injected faults in this process, one thread per rank, and judges the results.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "conformance/judge/judge.h"
#include "conformance/mutants/kill_matrix.h"
#include "conformance/mutants/mutants.h"

namespace plumbline::conformance {

struct FaultOutcome {
  Status status = Status::NotRun;
  std::string reason;                         ///< one line: the judge's sentence, or the error
  std::optional<reference::ResultKey> first;  ///< the first result that differs
  int64_t happened = 0;                       ///< how often the fault changed something
  TensorMap results;                          ///< of all ranks; empty after an error or a time-out
};

class FaultRunner {
 public:
  explicit FaultRunner(uint64_t seed) : seed_(seed), judge_(seed) {}

  /// The outcome without a fault. Each place is executed once and cached.
  const FaultOutcome& untouched(const RunId& place);

  /// Executes `place` with the fault that `make` builds for each rank. A wait longer than `timeout` ends the run.
  FaultOutcome run(const RunId& place, const std::function<Fault(const FaultSite&)>& make,
                   transport::Clock::duration timeout);

  /// The outcome of `mutant` in `place`, and the reason. Precondition: `place` passes without a fault.
  std::pair<Kill, std::string> kill(const RunId& place, const Mutant& mutant);

  /// The facts about `place` that why_not() checks.
  MutantRun traits(const RunId& place);

 private:
  struct Place {
    reference::Case of;
    schedule::Schedule schedule;
    std::optional<FaultOutcome> untouched;
  };
  Place& find(const RunId& place);

  uint64_t seed_;
  Judge judge_;
  std::map<RunId, Place> places_;
  std::map<std::pair<std::string, int>, CaseTraits> traits_;  // by case and stages
};

}  // namespace plumbline::conformance
