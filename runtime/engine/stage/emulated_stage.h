// Stages that sleep instead of computing: what is left of a step's time is what schedule, engine and transport cost.
#pragma once

#include "runtime/engine/engine.h"

namespace plumbline::engine {

/// A pipe of `stages` stages that hand a small vector from each to the next, for stages that do not compute.
PipeSource emulated_pipe(int stages);

/// Milliseconds that a stage sleeps: in F, in I and in W; in B as long as in both halves.
struct EmulatedTimes {
  double forward_ms = 0, input_ms = 0, weight_ms = 0;
};

/// Engine options under which every stage sleeps so. The first stage, whose inputs want no gradient, sleeps in its W as
/// long as in both halves and in its I not at all (Engine).
EngineOptions emulated_options(const EmulatedTimes& times);

/// The same with the halves of `backward_ms` equally long.
inline EngineOptions emulated_options(double forward_ms, double backward_ms) {
  return emulated_options({forward_ms, backward_ms / 2, backward_ms / 2});
}

}  // namespace plumbline::engine
