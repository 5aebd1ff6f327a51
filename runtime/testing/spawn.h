// Runs one test body over several ranks: threads in an ordinary test binary, processes in one started by mpirun.
//
//   TEST(Echo, Works) {
//     with_ranks(2, [](Transport& transport) { ... EXPECT_EQ(...); });
//   }
//
// The body must not share variables between ranks: over MPI every rank is a process with its own copy, and the whole
// test runs in each of them. Failures of every rank count, over threads and over MPI. Part of test binaries only.
#pragma once

#include <functional>

#include "runtime/transport/transport.h"

namespace plumbline::testing {

using RankBody = std::function<void(transport::Transport&)>;

/// Runs `body` on `ranks` ranks and returns when all have ended; true. With fewer processes than ranks it marks the
/// test as skipped, naming both numbers, and returns false. An exception of the body is rethrown: on threads the first
/// that is not a PeerError, after the other ranks were stopped; over MPI on the rank that threw, whose peers run into
/// their deadlines.
bool with_ranks(int ranks, const RankBody& body);

/// The launcher of with_ranks in this binary: threads, unless the main of the binary sets another one.
struct RankLauncher {
  int available;  // ranks it can offer
  std::function<void(int ranks, const RankBody& body)> run;
};
/// Returns the launcher until now.
RankLauncher set_rank_launcher(RankLauncher launcher);

}  // namespace plumbline::testing
