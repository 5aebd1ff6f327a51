// Stages that sleep instead of computing, so that the rest of a step's time is the overhead of schedule, engine and
// transport.
#pragma once

#include "runtime/engine/options.h"
#include "runtime/engine/plan/plan.h"

namespace plumbline::engine {

/// A source of pipes for emulated stages: each of the `stages` stages passes a tensor with the dtype and sizes of the
/// first input to the next stage.
PipeSource emulated_pipe(int stages);

/// The sleep of a stage in milliseconds, in F, I and W; B sleeps for input_ms + weight_ms.
struct EmulatedTimes {
  double forward_ms = 0, input_ms = 0, weight_ms = 0;
};

/// Engine options for one input "x" and a constant loss, under which every stage sleeps for these times. The first
/// stage, whose inputs need no gradient, does not sleep in its I and sleeps for both halves in its W (engine.h).
EngineOptions emulated_options(const EmulatedTimes& times);

/// The same with two halves of equal length.
inline EngineOptions emulated_options(double forward_ms, double backward_ms) {
  return emulated_options({forward_ms, backward_ms / 2, backward_ms / 2});
}

}  // namespace plumbline::engine
