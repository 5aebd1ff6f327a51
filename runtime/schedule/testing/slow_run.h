// For tests: executes a schedule by trial and error; shares no code with check.h, replay.h or simulate.h.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/orders/timed/durations.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::testing {

struct SlowRun {
  /// Empty when every F and every B (or I and W) appears once, on its rank, and all ranks reach their ends.
  std::string fault;
  double makespan = 0;
  double longest_rank = 0;  ///< most time from a rank's first start to its last end
  double busy = 0;          ///< of all ranks together
  std::vector<int> peak;    ///< per rank: most activations at once, from F to B or W
  /// Indexed by replica * stages + stage: the micro-batches in the order of their B or W.
  std::vector<std::vector<int>> sums;

  /// Whether every stage executes its B or its W by ascending micro-batch.
  bool sums_ascend() const;

  /// The mean idle time of a rank in the step.
  double bubble() const { return makespan - busy / static_cast<double>(peak.size()); }
};

/// A chain of stages. A group starts when all external inputs of its members are available and takes the sum of their
/// durations; their results become available at its end.
SlowRun slow_run(const schedule::Schedule& schedule, const schedule::Durations& durations = {},
                 bool forward_only = false);

/// The most activations that a rank holds at once: F takes one, I gives 1 - `kept` of it back, W or B the rest.
double slow_peak(const schedule::Schedule& schedule, double kept);

/// Each stage takes 1/V of a rank's forward, input and weight half.
schedule::Durations unit_share(int stages_per_rank, double forward = 1, double input = 1, double weight = 1);

}  // namespace plumbline::testing
