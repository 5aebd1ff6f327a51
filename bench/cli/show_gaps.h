// What --gaps of `plumbline bench throughput` and `plumbline bench gaps` show of a step.
#pragma once

#include <string>

#include "runtime/schedule/trace.h"

namespace plumbline::bench {

struct GapFiles {
  std::string svg, trace;  ///< empty: not written
};

/// Prints why each rank was idle in the step, whose unit is milliseconds, and writes the files. Throws InputError as
/// explain(), and if a file cannot be written.
void show_gaps(const schedule::Trace& step, const std::string& title, const GapFiles& files);

}  // namespace plumbline::bench
