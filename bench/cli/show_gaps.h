// Prints and draws the gaps of a step, for `plumbline bench throughput --gaps` and `plumbline bench gaps`.
#pragma once

#include <string>

#include "runtime/schedule/trace.h"

namespace plumbline::bench {

/// The paths of the files to write; empty: not written.
struct GapFiles {
  std::string svg;    ///< a picture (bubble_svg() of gaps.h)
  std::string trace;  ///< Chrome trace events in JSON (bubble_chrome_trace())
};

/// Explains why each rank was idle in `step`, prints the table on stdout and writes the files. The times of `step` must
/// be in milliseconds. `title` is that of the picture. Throws InputError for a trace that explain() refuses, and if a
/// file cannot be written.
void show_gaps(const schedule::Trace& step, const std::string& title, const GapFiles& files);

}  // namespace plumbline::bench
