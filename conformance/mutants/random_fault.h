// Random faults: one value, one message or one action, anywhere in a run, changed at random.
//
// A fault is a function of its seed (and of the runs to choose from), so that its number repeats it. What it does to a
// run is one of four: it is caught; it has no effect, that is, everything that the run delivers is bit for bit what
// the untouched runtime delivers, so that no judge could tell; its effect stays within what the case's truth allows
// (an error bound, the sign of a zero); or it is missed, which no fault may be.
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
  std::string what;  ///< "bit 3 of element 12 of a message from rank 1 (its 7th)"
  FaultEnd end = FaultEnd::Missed;
  Status status = Status::NotRun;
  std::string why;  ///< one line: what caught it, or why it could not be
};

/// "caught", "no-effect", "allowed", "missed".
std::string_view fault_end_name(FaultEnd end);

class RandomFaults {
 public:
  /// `runs` are those that pass without a fault; at least one.
  RandomFaults(std::vector<RunId> runs, FaultRunner& runner) : runs_(std::move(runs)), runner_(runner) {}

  /// Draws the fault of this seed and puts it in.
  RandomFault put_in(uint64_t seed);

 private:
  /// How many events of a kind each rank has in a run, by kind and rank.
  using Events = std::vector<std::vector<int64_t>>;
  const Events& events(const RunId& run);

  std::vector<RunId> runs_;
  FaultRunner& runner_;
  std::map<RunId, Events> events_;
};

/// How many ended how, in a line. Ends with a newline.
std::string summary(const std::vector<RandomFault>& faults);

}  // namespace plumbline::conformance
