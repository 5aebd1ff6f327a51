// A fixed amount of work, timed before, between and after benchmarks: if its time changes, the machine did, not the
// code. The work is a chain of dependent multiplications in a register: it needs no memory, and no compiler can shorten
// it.
#pragma once

#include <cstdint>
#include <vector>

namespace plumbline::bench {

/// Does the work `times` times and appends the seconds of each, some milliseconds, to `seconds`.
void probe_machine(int times, std::vector<double>& seconds);

/// Executes this many of the multiplications.
void multiply(int64_t multiplications);

/// How many of them this machine does in a second: the best of several trials.
double multiplications_per_second();

}  // namespace plumbline::bench
