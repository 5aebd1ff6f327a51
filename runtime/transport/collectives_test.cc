#include "runtime/transport/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/testing/spawn.h"

namespace plumbline::transport {
namespace {

using testing::with_ranks;

Deadline limit() { return Deadline::after(std::chrono::seconds(20)); }

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

/// No rank may leave before the last has entered. All processes of a machine share the steady clock, so the times can
/// be compared; the skew makes sure that an empty barrier fails.
void expect_barrier_holds(int ranks) {
  with_ranks(ranks, [](Transport& transport) {
    for (int late = 0; late < transport.size(); ++late) {
      if (transport.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      int64_t times[2];  // in, out
      times[0] = Clock::now().time_since_epoch().count();
      barrier(transport, limit());
      times[1] = Clock::now().time_since_epoch().count();
      if (transport.rank() != 0) {
        Request request = transport.isend(times, sizeof(times), 0, late);
        transport.wait(request, limit(), "times");
        continue;
      }
      int64_t last_in = times[0], first_out = times[1];
      for (int rank = 1; rank < transport.size(); ++rank) {
        int64_t theirs[2];
        Request request = transport.irecv(theirs, sizeof(theirs), rank, late);
        transport.wait(request, limit(), "times");
        last_in = std::max(last_in, theirs[0]);
        first_out = std::min(first_out, theirs[1]);
      }
      EXPECT_LE(last_in, first_out) << "late rank " << late;
    }
  });
}

TEST(Collectives, BarrierHolds1Rank) { expect_barrier_holds(1); }
TEST(Collectives, BarrierHolds2Ranks) { expect_barrier_holds(2); }
TEST(Collectives, BarrierHolds3Ranks) { expect_barrier_holds(3); }
TEST(Collectives, BarrierHolds8Ranks) { expect_barrier_holds(8); }

void expect_gather(int ranks) {
  with_ranks(ranks, [](Transport& transport) {
    const auto given = [](int rank) { return bytes_of(std::string(rank * 1000, static_cast<char>('a' + rank))); };
    for (int root : {0, transport.size() - 1}) {
      const auto all = gather_bytes(transport, root, given(transport.rank()), limit());
      if (transport.rank() != root) {
        EXPECT_TRUE(all.empty());
        continue;
      }
      ASSERT_EQ(all.size(), static_cast<size_t>(transport.size()));
      for (int rank = 0; rank < transport.size(); ++rank) EXPECT_EQ(all[rank], given(rank)) << "of rank " << rank;
    }
  });
}

TEST(Collectives, GatherKeepsRanksAndSizes) { expect_gather(2); }
TEST(Collectives, GatherOver4Ranks) { expect_gather(4); }

TEST(Collectives, BroadcastGivesTheRootsBytes) {
  with_ranks(2, [](Transport& transport) {
    for (int root : {0, 1}) {
      for (size_t size : {0ul, 5ul, 100000ul}) {
        const std::string text(size, static_cast<char>('x' + root));
        const auto mine = transport.rank() == root ? bytes_of(text) : bytes_of("ignored");
        EXPECT_EQ(broadcast_bytes(transport, root, mine, limit()), bytes_of(text));
      }
    }
  });
}

TEST(Collectives, DoNotMeetTheMessagesOfUsers) {
  with_ranks(2, [](Transport& transport) {
    // Receives that would match the messages of collectives, if tags were shared.
    const int peer = 1 - transport.rank();
    char low = 0, high = 0;
    Request requests[] = {transport.irecv(&low, 1, peer, 0), transport.irecv(&high, 1, peer, transport.max_tag())};
    barrier(transport, limit());
    gather_bytes(transport, 0, bytes_of("g"), limit());
    EXPECT_EQ(broadcast_bytes(transport, 1, bytes_of("b"), limit()), bytes_of("b"));
    EXPECT_FALSE(transport.test(requests[0]));
    EXPECT_FALSE(transport.test(requests[1]));
    barrier(transport, limit());
    Request sends[] = {transport.isend("l", 1, peer, 0), transport.isend("h", 1, peer, transport.max_tag())};
    for (Request& request : requests) transport.wait(request, limit(), "a user's message");
    for (Request& request : sends) transport.wait(request, limit(), "a user's message");
    EXPECT_EQ(low, 'l');
    EXPECT_EQ(high, 'h');
  });
}

}  // namespace
}  // namespace plumbline::transport
