// The runner: from the options of `plumbline run` to a report. It starts the ranks, judges each case as its results
// arrive, and continues after a crash with the remaining cases.
#pragma once

#include <iosfwd>

#include "conformance/plan/plan.h"

namespace plumbline::conformance {

/// Starts the ranks outside of this process (mpirun, or a process with threads), judges, prints to `out`, and writes
/// the report folder. Returns the exit code.
int run_supervised(const RunOptions& options, std::ostream& out);

/// Prints the runs of run_supervised() to `out`, one on each line, and their number. Executes none of them; a foreign
/// backend is asked to describe itself. Returns the exit code.
int list_runs(const RunOptions& options, std::ostream& out);

/// Under mpirun: this process is a rank, and every run is on all of them. Rank 0 judges, prints to `out` and writes the
/// report, for which it gathers the results over MPI: the others may be on hosts that do not share its folders. All
/// return its exit code. A number of ranks in the options must be the size of the MPI job.
int run_inside_mpi(RunOptions options, std::ostream& out);

}  // namespace plumbline::conformance
