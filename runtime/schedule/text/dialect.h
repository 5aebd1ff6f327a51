// The version of PyTorch's text form that a schedule needs or uses. The text itself does not name it.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

enum class Dialect {
  /// PyTorch before 2.6: B is the input half of a backward and BW the whole, where all other versions use I and B. It
  /// has no groups and no gradient reduction. Read only; never written.
  Torch2024,
  Torch211,  ///< as PyTorch 2.11 to 2.14 read and write it: F to RECV_B, UNSHARD, RESHARD, REDUCE_GRAD, groups
  Torch215,  ///< with WAIT_SEND_F, WAIT_SEND_B and WAIT_REDUCE_GRAD; reads what 2.11 writes, too
};

/// "2024", "2.11", "2.15"
std::string_view to_string(Dialect dialect);

/// The inverse. Throws InputError, one line, that lists the dialects.
Dialect parse_dialect(std::string_view text);

/// The older of today's dialects, 2.11 and 2.15, that has this kind, or all kinds of the schedule.
Dialect needed_dialect(ActionType type);
Dialect needed_dialect(const Schedule& schedule);

/// Parses an action of the dialect of 2024. Throws InputError for a kind that it did not have.
Action parse_action_of_2024(std::string_view text);

/// For a schedule that was parsed as today's text: its first B, if the schedule only makes sense as text of 2024. That
/// is the case when there is no I, and the B and the W are of the same stages and micro-batches. Otherwise nothing.
std::optional<Action> trace_of_2024(const Schedule& schedule);

}  // namespace plumbline::schedule
