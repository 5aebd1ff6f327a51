// The runner: from what the user asked for to a report. It starts the ranks, judges each case as its results arrive,
// and goes on after a crash with the cases that are left.
#pragma once

#include <iosfwd>

#include "conformance/plan/plan.h"

namespace plumbline::conformance {

/// Starts the ranks outside of this process (mpirun, or a process with threads), judges, reports to `out`, and writes
/// the report folder. Returns the exit code.
int run_supervised(const RunOptions& options, std::ostream& out);

/// Under mpirun: this process is a rank, and all runs are on that many ranks. Rank 0 judges and reports to `out`; all
/// return its exit code. Where the user named a number of ranks, it must be the size of the MPI job.
int run_inside_mpi(const RunOptions& options, std::ostream& out);

}  // namespace plumbline::conformance
