// Over threads and over MPI processes.
#include "runtime/transport/leftovers.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"
#include "runtime/testing/spawn.h"
#include "runtime/transport/collectives.h"

namespace plumbline::transport {
namespace {

Deadline in_time() { return Deadline::after(std::chrono::seconds(20)); }

/// Rank 0 sends a message `times` times to every other rank; each receives it once, and then all look for more.
void once_received(Transport& transport, int times, size_t numbers = 3) {
  Leftovers watched(transport);
  std::vector<int> sent(numbers);
  std::iota(sent.begin(), sent.end(), 1);
  const size_t bytes = numbers * sizeof(int);
  std::vector<Request> requests;
  if (watched.rank() == 0) {
    for (int peer = 1; peer < watched.size(); ++peer)
      for (int i = 0; i < times; ++i) requests.push_back(watched.isend(sent.data(), bytes, peer, 5));
  } else {
    std::vector<int> received(numbers);
    Request request = watched.irecv(received.data(), bytes, 0, 5);
    watched.wait(request, in_time(), "the test's message");
    EXPECT_EQ(received, sent);
  }
  barrier(watched, in_time());
  const bool is_left = times > 1 && watched.rank() != 0;
  const std::string said = testing::failure<Error>([&] { watched.expect_none(); });
  EXPECT_EQ(said, is_left ? "rank " + std::to_string(watched.rank()) +
                                ": a message of rank 0 with tag 5 is left when all have been received: it came twice, "
                                "or was sent too often"
                          : "accepted");
  barrier(watched, in_time());  // the sends' memory
  watched.withdraw();
}

TEST(Leftovers, AMessageThatCameTwiceIsFound) {
  testing::with_ranks(2, [](Transport& transport) { once_received(transport, 2); });
}

// Over MPI such a message needs its sender's help to arrive, long after the receiver knows of it.
TEST(Leftovers, ALargeMessageThatCameTwiceIsFound) {
  testing::with_ranks(2, [](Transport& transport) { once_received(transport, 2, 1 << 18); });
}

TEST(Leftovers, WithoutOneNothingIsSaidAndNothingIsTaken) {
  testing::with_ranks(3, [](Transport& transport) {
    once_received(transport, 1);
    once_received(transport, 1);
  });
}

}  // namespace
}  // namespace plumbline::transport
