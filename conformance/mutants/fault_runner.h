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
  std::optional<reference::ResultKey> first;  ///< the first result that differs, in causal order
  int64_t happened = 0;                       ///< number of times that the fault changed something
  TensorMap results;                          ///< of all ranks; empty for Status::Error and Status::Timeout
};

/// `place` is a run: a case of the corpus, a schedule and a number of ranks; its transport is ignored. The first use of
/// a place throws InputError if its case or schedule does not exist. Not thread-safe. References that the members
/// return are valid as long as the runner.
class FaultRunner {
 public:
  explicit FaultRunner(uint64_t seed) : seed_(seed), judge_(seed) {}

  /// The outcome without a fault, executed on the first call and cached.
  const FaultOutcome& untouched(const RunId& place);

  /// Executes `place` with the fault that `make` constructs for each rank; the threads of the ranks call `make`
  /// concurrently. An empty `make` injects none. A rank that waits longer than `timeout` ends the run with
  /// Status::Timeout; any other exception ends it with Status::Error.
  FaultOutcome run(const RunId& place, const std::function<Fault(const FaultSite&)>& make,
                   transport::Clock::duration timeout);

  /// Injects `mutant` into `place`. Returns the outcome with its reason: the unmet requirement for NotApplicable, the
  /// sentence or error for a kill, else empty. Precondition: `place` passes without a fault.
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
