// The comparison of the ranks' plans: every rank captured the whole model, so all must expect the same values.
#pragma once

#include "runtime/engine/plan/plan.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// Before any message, compares the values that each rank will send with those that its peer expects: shapes and dtypes
/// for every value and micro-batch. Throws Error naming stage, micro-batch, value and both shapes. Every rank calls it.
void check_with_peers(const Plan& plan, transport::Transport& transport, const transport::Deadline& deadline);

}  // namespace plumbline::engine
