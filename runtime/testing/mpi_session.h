// For tests of what only MPI has; they are part of binaries with gtest_mpi_main.cc only.
#pragma once

#include "runtime/transport/mpi.h"

namespace plumbline::testing {

/// The session that the main of this binary holds.
transport::MpiSession& mpi_session();

}  // namespace plumbline::testing
