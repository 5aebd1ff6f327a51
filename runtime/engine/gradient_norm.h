// The norm of all gradients of a pipeline, for gradient clipping and for skipping a step whose gradients overflowed.
#pragma once

#include <map>

#include "runtime/split/pipe.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

enum class Norm {
  Two,       ///< the square root of the sum of squares
  Infinity,  ///< the largest absolute value
};

/// The norm over the gradients of all parameters of all ranks, the same number on every rank. A parameter that several
/// stages or replicas hold is counted once; one without a gradient adds nothing. Computed in float64: each parameter's
/// squares are summed by its holder, and the sums are added by ascending name, so that the bits do not depend on the
/// split of the model. Infinity or NaN if a gradient is not finite. Every rank calls this function after its step, with
/// its engine's states(). Throws as Transport::wait() does.
double gradient_norm(const std::map<int, split::StageState>& states, Norm norm, transport::Transport& transport,
                     const transport::Deadline& deadline);

}  // namespace plumbline::engine
