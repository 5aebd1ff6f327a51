// `plumbline doctor` on the ranks of an MPI job.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// Under mpirun: hosts, versions, working folder, clocks, cores and the links of every pair of ranks. Every rank calls
/// it; rank 0 prints to `out`. Returns the exit code on every rank: 1 when a step failed. `host` and `mpi`: the host
/// name and the MPI version of this rank.
int examine_ranks(transport::Transport& transport, const std::string& host, const std::string& mpi, std::ostream& out);

/// Starts `ranks` ranks of `program` with `launcher` (launcher.h), which then examine themselves, and passes their
/// output on to `out`. Returns the launcher's exit code. Throws InputError if it cannot be started, and Error if a
/// signal ends it or it takes too long.
int examine_launched_ranks(const std::vector<std::string>& launcher, int ranks, const std::string& program,
                           std::ostream& out);

}  // namespace plumbline::conformance
