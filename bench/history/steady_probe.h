// A fixed amount of work, timed before, between and after benchmarks: if its time changes, the machine did, not the code.
#pragma once

#include <vector>

namespace plumbline::bench {

/// Executes the work `times` times and appends the seconds of each, about 5 ms, to `seconds`. The work is a chain of
/// dependent multiplications in registers: it needs no memory, and no compiler can shorten it.
void probe_machine(int times, std::vector<double>& seconds);

}  // namespace plumbline::bench
