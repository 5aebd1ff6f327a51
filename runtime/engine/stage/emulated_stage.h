// Stages that sleep instead of computing: the rest of a step's time is the overhead of schedule, engine and transport.
#pragma once

#include "runtime/engine/options.h"
#include "runtime/engine/plan/plan.h"

namespace plumbline::engine {

/// A pipe of `stages` stages, each passing a small vector to the next, for stages that do not compute.
PipeSource emulated_pipe(int stages);

/// A stage's sleep in milliseconds: in F, in I and in W; B sleeps for both halves.
struct EmulatedTimes {
  double forward_ms = 0, input_ms = 0, weight_ms = 0;
};

/// Engine options under which every stage sleeps for these times. The first stage, whose inputs need no gradient,
/// sleeps for both halves in its W and not at all in its I (Engine).
EngineOptions emulated_options(const EmulatedTimes& times);

/// The same with the halves of `backward_ms` equally long.
inline EngineOptions emulated_options(double forward_ms, double backward_ms) {
  return emulated_options({forward_ms, backward_ms / 2, backward_ms / 2});
}

}  // namespace plumbline::engine
