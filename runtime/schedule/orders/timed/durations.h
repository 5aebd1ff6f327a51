// The durations of a stage's actions, which the simulation and some schedules use.
#pragma once

#include <optional>

namespace plumbline::schedule {

/// The duration of each kind of action of a stage; all in one unit, finite and not below 0.
struct Durations {
  double forward = 1;                   ///< F, above 0
  double input = 1;                     ///< I, the half of the backward for which other stages wait
  double weight = 1;                    ///< W, the half for which no stage waits
  std::optional<double> backward = {};  ///< B; by default input + weight
  double comm = 0;                      ///< from the end of an action until its result arrives on another rank
  double gather = 0;                    ///< from the last rank's UNSHARD until the parameters are whole on all
  double reduce = 0;                    ///< from the last rank's REDUCE_GRAD until the gradients are summed on all
  double offload = 0;                   ///< from the beginning of an OFFLOAD's transfer until the memory is free
  double reload = 0;                    ///< from the beginning of a RELOAD's transfer until the activations are back
};

}  // namespace plumbline::schedule
