// Forward and backward in turn: the steady state that most orders of a rank share.
//
// 1F1B, its eager, interleaved and sliced relatives and the zero-bubble orders of one pipeline differ in which forwards
// and backwards a rank has, how many forwards come first, and how long a weight half is delayed.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/action.h"

namespace plumbline::schedule {

/// Returns the first `warm_up` forwards (all, if there are fewer); then a forward and a backward in turn until no
/// forward is left; then the remaining backwards. There must be as many backwards as forwards, and `warm_up` must not
/// be negative. Each list keeps its order.
std::vector<Action> in_turn(const std::vector<Action>& forwards, const std::vector<Action>& backwards,
                            std::int64_t warm_up);

/// The same with each backward in halves, I and W, whatever its type: the W of a backward directly follows the I that
/// is `lag` places later in `backwards`; the remaining W come at the end, in the order of their I.
std::vector<Action> in_turn_by_halves(const std::vector<Action>& forwards, const std::vector<Action>& backwards,
                                      std::int64_t warm_up, std::int64_t lag);

}  // namespace plumbline::schedule
