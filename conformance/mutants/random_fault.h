// Random faults: each changes one value, one message or one action at a random place of a run.
//
// The seed and the list of runs determine the fault, so that a seed reproduces it. FaultEnd lists the possible ends of
// a fault; the corpus must miss none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/mutants/fault_runner.h"

namespace plumbline::conformance {

/// Caught: the run does not pass. NoEffect: all results are bitwise equal to those without the fault, so that no judge
/// could notice it. Allowed: the results differ within the limits of the case's truth (an error bound, the sign of a
/// zero). Missed: the run passes although its results differ otherwise.
enum class FaultEnd { Caught, NoEffect, Allowed, Missed };

struct RandomFault {
  uint64_t seed = 0;
  RunId run;
  std::string what;  ///< the change and its place: "lost: a message of rank 1, number 7"
  FaultEnd end = FaultEnd::Missed;
  Status status = Status::NotRun;  ///< of the run with the fault
  std::string why;                 ///< one line that explains `end`
};

/// "caught", "no-effect", "allowed", "missed".
std::string_view fault_end_name(FaultEnd end);

class RandomFaults {
 public:
  /// `runs` must not be empty, and every run must pass without a fault. `runner` must outlive this object.
  RandomFaults(std::vector<RunId> runs, FaultRunner& runner) : runs_(std::move(runs)), runner_(runner) {}

  /// Draws a run and a fault from `seed`, injects the fault and executes the run. Throws Error if the run does not pass
  /// without a fault.
  RandomFault put_in(uint64_t seed);

 private:
  /// The number of events in a run, by kind and rank.
  using Events = std::vector<std::vector<int64_t>>;
  const Events& events(const RunId& run);

  std::vector<RunId> runs_;
  FaultRunner& runner_;
  std::map<RunId, Events> events_;
};

/// One line with the number of faults by end, and a newline.
std::string summary(const std::vector<RandomFault>& faults);

}  // namespace plumbline::conformance
