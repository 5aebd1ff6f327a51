// A stage's backward whole and in halves, timed in pairs: what disturbs the machine hits both.
#pragma once

#include <vector>

#include "bench/micro/backward_models.h"

namespace plumbline::bench {

/// Seconds of each pair. The halves and the full backward that stand at one place were made one after the other.
struct BackwardTimes {
  std::vector<double> full, input, weight;

  /// Input and weight backward together.
  std::vector<double> split() const;
  /// The median of the pairs' split over full.
  double ratio() const;
};

/// Adds one pair: forward and full backward, forward and the two halves, the other order every other time. The
/// forwards are not timed; letting the output go is.
void measure_pair(BackwardStage& stage, BackwardTimes& times);

}  // namespace plumbline::bench
