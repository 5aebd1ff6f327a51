// Random faults: each changes one value, one message or one action at a random place of a run.
//
// The seed and the list of runs determine the fault, so a seed repeats it. A fault ends in one of four ways: it is
// caught; it has no effect, that is, everything that the run delivers is bit for bit what it delivers without the
// fault, so no judge could tell; its effect stays within what the case's truth allows (an error bound, the sign of a
// zero); or it is missed, which no fault may be.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/mutants/fault_runner.h"

namespace plumbline::conformance {

enum class FaultEnd { Caught, NoEffect, Allowed, Missed };

struct RandomFault {
  uint64_t seed = 0;
  RunId run;
  std::string what;  ///< "lost: a message of rank 1, number 7"
  FaultEnd end = FaultEnd::Missed;
  Status status = Status::NotRun;
  std::string why;  ///< one line: how it was caught, or why it was not
};

/// "caught", "no-effect", "allowed", "missed".
std::string_view fault_end_name(FaultEnd end);

class RandomFaults {
 public:
  /// `runs` holds at least one run; each must pass without a fault.
  RandomFaults(std::vector<RunId> runs, FaultRunner& runner) : runs_(std::move(runs)), runner_(runner) {}

  /// Draws the fault of this seed and executes its run with it. Throws Error if the run fails without a fault.
  RandomFault put_in(uint64_t seed);

 private:
  /// The number of events in a run, by kind and rank.
  using Events = std::vector<std::vector<int64_t>>;
  const Events& events(const RunId& run);

  std::vector<RunId> runs_;
  FaultRunner& runner_;
  std::map<RunId, Events> events_;
};

/// One line that counts the ends. Ends with a newline.
std::string summary(const std::vector<RandomFault>& faults);

}  // namespace plumbline::conformance
