// Runs cases with faults in them in this process, ranks as threads, and judges what comes of it.
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
  std::string reason;                         ///< one line: what gave it away
  std::optional<reference::ResultKey> first;  ///< the result where it shows first
  int64_t happened = 0;                       ///< how often the fault changed something
  TensorMap results;                          ///< of all ranks; empty after an error
};

class FaultRunner {
 public:
  explicit FaultRunner(uint64_t seed) : seed_(seed), judge_(seed) {}

  /// The runtime as it is; run once for each place.
  const FaultOutcome& untouched(const RunId& place);

  /// With the fault that `make` puts around each rank. A wait that takes longer than `timeout` ends the run.
  FaultOutcome run(const RunId& place, const std::function<Fault(const FaultSite&)>& make,
                   transport::Clock::duration timeout);

  /// What `mutant` comes to there, and why; the untouched runtime must have passed.
  std::pair<Kill, std::string> kill(const RunId& place, const Mutant& mutant);

  /// What `place` is for why_not().
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
