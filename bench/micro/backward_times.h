// Times a stage's full backward and its two halves in pairs, so that disturbances of the machine affect both alike.
#pragma once

#include <vector>

#include "bench/micro/backward_models.h"

namespace plumbline::bench {

/// Seconds, indexed by pair: the full backward and the two halves of one pair ran in direct succession.
struct BackwardTimes {
  std::vector<double> full, input, weight;

  /// For each pair: the time of the input half plus that of the weight half.
  std::vector<double> split() const;
  /// The median over the pairs of split / full. There must be at least one pair.
  double ratio() const;
};

/// Measures one pair and appends it to `times`: forward and full backward, then forward and the two halves, or in the
/// opposite order at every second call. The times exclude the forwards and include the release of the output.
void measure_pair(BackwardStage& stage, BackwardTimes& times);

}  // namespace plumbline::bench
