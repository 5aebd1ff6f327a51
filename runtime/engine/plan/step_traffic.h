// The messages of boundary values and their gradients that one rank exchanges in a step, for transports that prepare
// for them.
#pragma once

#include <span>

#include "runtime/engine/context.h"
#include "runtime/engine/plan/plan.h"

namespace plumbline::engine {

/// `actions` is this rank's lowered list. In the order in which a Step posts them; linear in the number of messages.
transport::Traffic step_traffic(const EngineContext& context, const Plan& plan,
                                std::span<const schedule::Action> actions);

}  // namespace plumbline::engine
