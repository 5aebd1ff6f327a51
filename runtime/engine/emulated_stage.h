// Stages that sleep instead of computing: what is left of a step's time is what schedule, engine and transport cost.
#pragma once

#include "runtime/engine/engine.h"

namespace plumbline {

/// A pipe of `stages` stages that hand a small vector from each to the next, for stages that do not compute.
PipeSource emulated_pipe(int stages);

/// Engine options under which every forward sleeps `forward_ms` and every backward `backward_ms` milliseconds.
EngineOptions emulated_options(double forward_ms, double backward_ms);

}  // namespace plumbline
