// Prints a schedule as text, as papers do: a row for each rank, a column (slot) for each unit of time.
#pragma once

#include <string>

#include "runtime/schedule/trace.h"

namespace plumbline::conformance {

struct GridOptions {
  int width = 120;       ///< characters in a line, if a slot fits; wider schedules continue in a block below
  int most_lines = 400;  ///< of ranks; a last line says which ranks and slots are left out
};

/// `trace` must be in whole units of time. The first slot of an action holds its text and the others =, a bubble is
/// dots, and & follows each member of a group except the last. Slot numbers head each block.
std::string schedule_grid(const schedule::Trace& trace, const GridOptions& options = {});

}  // namespace plumbline::conformance
