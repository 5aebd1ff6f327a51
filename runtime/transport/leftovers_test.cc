// Over threads and over MPI processes.
#include "runtime/transport/leftovers.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"
#include "runtime/testing/spawn.h"
#include "runtime/transport/collectives.h"

namespace plumbline::transport {
namespace {

Deadline in_time() { return Deadline::after(std::chrono::seconds(20)); }

/// Rank 0 sends message `m` `times` times to every other rank; each receives it once, and then all look for more.
void once_received(Transport& transport, int times) {
  Leftovers watched(transport);
  std::vector<int> sent = {1, 2, 3};
  std::vector<Request> requests;
  if (watched.rank() == 0) {
    for (int peer = 1; peer < watched.size(); ++peer)
      for (int i = 0; i < times; ++i) requests.push_back(watched.isend(sent.data(), sizeof(int) * 3, peer, 5));
  } else {
    std::vector<int> received(3);
    Request request = watched.irecv(received.data(), sizeof(int) * 3, 0, 5);
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

TEST(Leftovers, WithoutOneNothingIsSaidAndNothingIsTaken) {
  testing::with_ranks(3, [](Transport& transport) {
    once_received(transport, 1);
    once_received(transport, 1);
  });
}

}  // namespace
}  // namespace plumbline::transport
