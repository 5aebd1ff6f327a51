// Prints a schedule as text, in the form common in papers: a row for each rank, a column (slot) for each unit of time.
#pragma once

#include <string>

#include "runtime/schedule/trace.h"

namespace plumbline::conformance {

struct GridOptions {
  int width = 120;  ///< characters per line; a wider schedule continues in further blocks below
  /// Number of lines for ranks in all blocks together. Further ranks and slots are left out, and a last line names
  /// them.
  int most_lines = 400;
};

/// Returns the text of `trace`, whose times must be whole numbers. The first slot of an action contains its text, its
/// other slots =, and an idle slot a dot. & follows each action of an overlapped group except the last. Each block
/// begins with the slot numbers.
std::string schedule_grid(const schedule::Trace& trace, const GridOptions& options = {});

}  // namespace plumbline::conformance
