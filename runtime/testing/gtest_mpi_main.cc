// The main of test binaries that mpirun starts: every rank runs the same tests, `with_ranks` uses the processes as
// ranks, and rank 0 alone reports, for all.
#include <gtest/gtest.h>

#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <span>

#include "runtime/testing/mpi_listener.h"
#include "runtime/testing/mpi_session.h"
#include "runtime/testing/spawn.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/mpi/mpi.h"

namespace plumbline::testing {
namespace {

/// The most by which ranks may lag each other outside the bodies of tests.
constexpr std::chrono::seconds kLimit{120};

transport::MpiSession* current_session = nullptr;

void run_on_processes(transport::Transport& world, int ranks, const RankBody& body) {
  transport::barrier(world, transport::Deadline::after(kLimit));  // sleeps; creating a communicator spins
  // A new communicator for every body: messages that a failed body left unreceived must not reach the next.
  const std::unique_ptr<transport::Transport> transport =
      transport::make_mpi_transport(*current_session, {.ranks = ranks});
  if (transport != nullptr) body(*transport);
}

/// Ranks other than 0 print nothing and write no report: launched with the same arguments, they would all write the
/// same file.
void silence_other_ranks(const transport::MpiSession& session) {
  if (session.rank() == 0) return;
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  delete listeners.Release(listeners.default_xml_generator());
}

/// With --gtest_shuffle and no seed, GoogleTest would derive one from each process's clock.
void agree_on_shuffle(transport::Transport& world) {
  int seed = GTEST_FLAG_GET(random_seed);
  if (seed == 0) seed = 1 + static_cast<int>(std::time(nullptr) % 99998);
  const auto bytes =
      transport::broadcast_bytes(world, 0, std::as_bytes(std::span(&seed, 1)), transport::Deadline::after(kLimit));
  std::memcpy(&seed, bytes.data(), sizeof(seed));
  GTEST_FLAG_SET(random_seed, seed);
}

int run_tests(transport::MpiSession& session) {
  current_session = &session;
  const std::unique_ptr<transport::Transport> world = transport::make_mpi_transport(session);
  agree_on_shuffle(*world);
  silence_other_ranks(session);
  MpiListener listener(*world);
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  listeners.Append(&listener);
  set_rank_launcher({session.size(), [&](int ranks, const RankBody& body) { run_on_processes(*world, ranks, body); }});
  const int code = RUN_ALL_TESTS();
  listeners.Release(&listener);
  return agree_on_exit_code(*world, code);
}

}  // namespace

transport::MpiSession& mpi_session() { return *current_session; }

}  // namespace plumbline::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  plumbline::transport::MpiSession session;
  if (GTEST_FLAG_GET(list_tests)) return session.rank() == 0 ? RUN_ALL_TESTS() : 0;
  try {
    return plumbline::testing::run_tests(session);
  } catch (const std::exception& error) {
    session.abort(error.what());
  }
}
