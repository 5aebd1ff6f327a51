// StepResult: the result of a step.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "runtime/schedule/trace.h"

namespace plumbline::engine {

/// Seconds on the steady clock, which ranks of one machine share.
struct StepTimes {
  double begin = 0, end = 0;
  double busy = 0;  ///< inside forwards (loss included) and backwards (whole or in halves) of this rank's stages
  /// Blocked until a message arrived, a send completed or a RELOAD ended; not for sums over copies or for gathers.
  double waiting = 0;
};

/// A rank's part of the results of a step.
struct StepResult {
  /// [micro-batch][output], detached; empty on a rank without the last stage. If the last stage has several replicas,
  /// or micro-batches end with several stages, the entry of a micro-batch that ended on another rank is empty.
  std::vector<std::vector<at::Tensor>> outputs;
  /// [micro-batch]: the stage with which it ended; empty if all micro-batches ended with the last stage, and where
  /// `outputs` is empty.
  std::vector<int> ended_with;
  /// [micro-batch], detached, not weighted; empty without a loss function or on a rank without the last stage,
  /// undefined for a micro-batch that another rank executed.
  std::vector<at::Tensor> losses;
  /// [micro-batch][output of the model], detached, not weighted: the local losses of this rank's stages; undefined for
  /// other outputs. Empty without local losses.
  std::vector<std::vector<at::Tensor>> local_losses;
  StepTimes times;
  /// With EngineOptions::trace: this rank's actions in the order of execution, in seconds as in `times`. An action
  /// begins when its messages have arrived, so that the time between two actions is idle time.
  std::vector<schedule::TimedAction> trace;
};

}  // namespace plumbline::engine
