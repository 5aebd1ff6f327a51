// The comparison of the ranks' plans: every rank captured the whole model, so all must expect the same values.
#pragma once

#include "runtime/engine/plan/plan.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// Compares every rank's boundary values with rank 0's, before the first message of a step: stage, micro-batch, name,
/// dtype, shape, and whether a gradient returns. On a difference every rank throws Error naming stage, micro-batch,
/// value and both shapes. Every rank calls this function; nothing happens with one rank. Also throws as
/// Transport::wait() does.
void check_with_peers(const Plan& plan, transport::Transport& transport, const transport::Deadline& deadline);

}  // namespace plumbline::engine
