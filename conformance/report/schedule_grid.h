// A schedule as text in slots of time, as papers print them: a row for each rank, a column for each unit of time.
#pragma once

#include <string>

#include "runtime/schedule/trace.h"

namespace plumbline::conformance {

struct GridOptions {
  int width = 120;       ///< characters in a line, at least; wider schedules go on in a block below
  int most_lines = 400;  ///< of ranks; what is left out is told
};

/// `trace` in whole units of time. An action has its text in its first slot and = in the others, a bubble has dots,
/// and a member of a group that goes on has & behind it. Above each block stand the numbers of the slots.
std::string schedule_grid(const schedule::Trace& trace, const GridOptions& options = {});

}  // namespace plumbline::conformance
