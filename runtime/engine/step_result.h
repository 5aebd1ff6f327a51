// StepResult: the result of a step.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "runtime/schedule/trace.h"

namespace plumbline::engine {

/// Seconds on the steady clock, which ranks of one machine share.
struct StepTimes {
  double begin = 0, end = 0;
  double busy = 0;     ///< inside forwards and backwards (whole or in halves) of this rank's stages
  double waiting = 0;  ///< blocked until a message arrived
};

/// A rank's part of the results of a step.
struct StepResult {
  /// [micro-batch][output], detached; on a rank of the last stage, elsewhere empty. If the last stage has several
  /// replicas, empty for the micro-batches of another rank.
  std::vector<std::vector<at::Tensor>> outputs;
  /// [micro-batch], detached, not weighted; likewise, undefined for those of another rank.
  std::vector<at::Tensor> losses;
  StepTimes times;
  /// With EngineOptions::trace: this rank's actions in the order of execution, in seconds as in `times`. An action
  /// begins when its messages have arrived, so that the time between two actions is idle time.
  std::vector<schedule::TimedAction> trace;
};

}  // namespace plumbline::engine
