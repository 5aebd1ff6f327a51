// The durations of a stage's actions, for the simulation and for schedules that depend on durations.
#pragma once

#include <optional>

namespace plumbline::schedule {

/// The duration of each kind of action, for any stage; all in one unit.
struct Durations {
  double forward = 1;                   ///< F, above 0
  double input = 1;                     ///< I, the half of the backward that other stages wait for
  double weight = 1;                    ///< W, the half that no stage waits for
  std::optional<double> backward = {};  ///< B; by default input + weight
  double comm = 0;                      ///< from the end of an action until its result is on another rank
};

}  // namespace plumbline::schedule
