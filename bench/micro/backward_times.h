// A stage's backward whole and in halves, timed in pairs so that disturbances affect both.
#pragma once

#include <vector>

#include "bench/micro/backward_models.h"

namespace plumbline::bench {

/// Seconds per pair. The full backward and the halves at one index were measured in direct succession.
struct BackwardTimes {
  std::vector<double> full, input, weight;

  /// Input plus weight backward.
  std::vector<double> split() const;
  /// The median of the pairs' split over full.
  double ratio() const;
};

/// Adds one pair: forward and full backward, forward and the two halves, in alternating order. The forwards are not
/// timed; releasing the output is.
void measure_pair(BackwardStage& stage, BackwardTimes& times);

}  // namespace plumbline::bench
