#include "runtime/testing/spawn.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "runtime/transport/threads/threads.h"

namespace plumbline::testing {
namespace {

void run_on_threads(int ranks, const RankBody& body) {
  transport::run_thread_ranks(ranks, [&body](transport::Transport& transport) {
    body(transport);
    // A body that an ASSERT_ ended leaves the others waiting for messages that will not come.
    if (::testing::Test::HasFatalFailure()) transport.abort("a fatal test failure");
  });
}

RankLauncher& launcher() {
  static RankLauncher instance{std::numeric_limits<int>::max(), run_on_threads};
  return instance;
}

}  // namespace

RankLauncher set_rank_launcher(RankLauncher replacement) { return std::exchange(launcher(), std::move(replacement)); }

bool with_ranks(int ranks, const RankBody& body) {
  const auto skip = [ranks] { GTEST_SKIP() << "needs " << ranks << " ranks, mpirun started " << launcher().available; };
  if (ranks > launcher().available) {
    skip();
    return false;
  }
  launcher().run(ranks, [&body](transport::Transport& transport) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, "on rank " + std::to_string(transport.rank()));
    body(transport);
  });
  return true;
}

}  // namespace plumbline::testing
