// Dialects: the versions of PyTorch's text form that a schedule needs or uses. The text does not name its dialect.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

enum class Dialect {
  /// PyTorch before 2.6: B is the input half of a backward and BW the whole backward, where later versions use I and B.
  /// Has no groups and no gradient reduction. Read, never written.
  Torch2024,
  Torch211,  ///< read and written by PyTorch 2.11 to 2.14: F to RECV_B, UNSHARD, RESHARD, REDUCE_GRAD, groups
  Torch215,  ///< also WAIT_SEND_F, WAIT_SEND_B and WAIT_REDUCE_GRAD; includes Torch211
};

/// "2024", "2.11", "2.15"
std::string_view to_string(Dialect dialect);

/// The inverse of to_string(). Throws InputError, one line, that lists the dialects.
Dialect parse_dialect(std::string_view text);

/// The older of today's dialects, 2.11 and 2.15, that has this kind. OFFLOAD and RELOAD,
/// which PyTorch lacks, count as 2.11.
Dialect needed_dialect(ActionType type);

/// Parses an action of the dialect of 2024 into today's kinds. Throws InputError for a kind that the dialect lacks, and
/// as parse_action() does.
Action parse_action_of_2024(std::string_view text);

/// For a schedule that was parsed as today's text: its first B if the schedule only makes sense as text of 2024, that
/// is, if there is no I, and the B and the W are of the same stages and micro-batches. Otherwise empty.
std::optional<Action> trace_of_2024(const Schedule& schedule);

}  // namespace plumbline::schedule
