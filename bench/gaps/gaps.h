// "Where is my bubble?": why each rank was idle in a measured step, and the chain of actions that determined its
// duration.
//
// A gap is the idle time before a computation. It has two parts. The first is the wait until another rank has computed
// the input. The second belongs to the runtime (Overhead, as much as is usual before computations without such an
// input) and to the message (LateMessage, the remainder). The wait is compared with the waits in three simulations of
// the same order of actions, in which only computations take time. In the first, computations of one kind take equal
// time on all stages: this wait is Dependency. In the second, each stage takes its own median time, which adds
// Imbalance. In the third, each computation takes its measured time, which adds OtherLoad. The remainder is Elsewhere:
// messages or overhead before other actions.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "runtime/schedule/trace.h"

namespace plumbline::bench {

enum class Cause { Dependency, Imbalance, OtherLoad, LateMessage, Overhead, Elsewhere };

inline constexpr int kCauses = 6;

/// "dependency", "imbalance", "other load", "late message", "overhead", "elsewhere"
const char* cause_name(Cause cause);

/// A time in which a rank computed nothing, before an action or, at the end, after its last one.
struct Gap {
  int rank = 0;
  int before = 0;                       ///< index in the rank's computations; their number for the gap at the end
  double begin = 0, end = 0;            ///< in the unit of the trace
  std::array<double, kCauses> by = {};  ///< by Cause: the parts, which add up to end - begin
};

/// A piece of the critical path: a computation, or the time before it until the previous one's end.
struct CriticalStep {
  int rank = 0, action = 0;  ///< index in the rank's computations
  double begin = 0, end = 0;
  bool computes = true;
};

struct Bubble {
  double begin = 0, end = 0;                                     ///< of the step
  std::vector<std::vector<schedule::TimedAction>> computations;  ///< of the trace, by rank
  std::vector<Gap> gaps;                                         ///< by rank, in the order of time; none of length 0
  std::vector<CriticalStep> path;                                ///< ascending, from `begin` to `end`
};

/// Examines a trace of one step over stages in a chain, as the engine measures it: each action begins when its inputs
/// have arrived. Throws InputError for a trace without a computation, and for one in which a computation lacks its
/// inputs, or begins before they were computed (clocks that differ).
Bubble explain(const schedule::Trace& measured);

/// A table with a row for each rank: computations and idle time by cause; then the critical path in one line by cause.
/// `unit`: that of the trace. Ends with a newline.
std::string bubble_text(const Bubble& bubble, const std::string& unit);

/// The step as one picture, idle time coloured by its largest cause, the critical path framed.
std::string bubble_svg(const Bubble& bubble, const std::string& title, const std::string& unit);

/// The step as Chrome trace events: computations, idle times with their causes, and the critical path as a thread of
/// its own. The trace's unit is milliseconds.
std::string bubble_chrome_trace(const Bubble& bubble);

}  // namespace plumbline::bench
