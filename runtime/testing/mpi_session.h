// For tests of MPI's features; they belong only to binaries with gtest_mpi_main.cc.
#pragma once

#include "runtime/transport/mpi/mpi.h"

namespace plumbline::testing {

/// The session that the main of this binary holds.
transport::MpiSession& mpi_session();

}  // namespace plumbline::testing
