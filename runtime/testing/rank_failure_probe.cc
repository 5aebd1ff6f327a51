// A test that fails on the last rank only. The build expects this binary to fail: if it passes, the main for MPI loses
// the failures of ranks other than 0.
#include <gtest/gtest.h>

#include "runtime/testing/spawn.h"

namespace plumbline::testing {
namespace {

TEST(RankFailureProbe, FailsOnTheLastRank) {
  with_ranks(
      2, [](transport::Transport& transport) { EXPECT_NE(transport.rank(), transport.size() - 1) << "on purpose"; });
}

}  // namespace
}  // namespace plumbline::testing
