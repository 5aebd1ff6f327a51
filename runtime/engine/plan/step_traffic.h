// The messages of boundary values and their gradients that one rank exchanges in a step, for transports that prepare
// for them.
#pragma once

#include <span>

#include "runtime/engine/context.h"
#include "runtime/engine/plan/plan.h"

namespace plumbline::engine {

/// Returns the messages in the order in which a Step posts them, in linear time. `actions` is this rank's lowered list.
transport::Traffic step_traffic(const EngineContext& context, const Plan& plan,
                                std::span<const schedule::Action> actions);

}  // namespace plumbline::engine
