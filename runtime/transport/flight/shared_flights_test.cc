#include "runtime/transport/flight/shared_flights.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/error.h"
#include "runtime/testing/spawn.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/flight/flight_recorder.h"

namespace plumbline::transport::flight {
namespace {

using namespace std::chrono_literals;
using testing::with_ranks;

Deadline limit() { return Deadline::after(20s); }

/// A rank's log, as if its clock were 1000 s ahead of that of the rank before.
struct Rank {
  explicit Rank(Transport& inner) : shared(inner, &log, 1000.0 * inner.rank()), recorded(record_flight(shared, log)) {}

  FlightLog log;
  SharedFlights shared;
  std::unique_ptr<Transport> recorded;
};

/// Counts the receives that were posted since the last withdraw(). Its first 100 tests find nothing complete.
class Reluctant : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    ++receives_;
    return ForwardingTransport::irecv(data, bytes, peer, tag);
  }
  bool test(Request& request) override { return ++tests_ > 100 && ForwardingTransport::test(request); }
  void withdraw() noexcept override {
    receives_ = 0;
    ForwardingTransport::withdraw();
  }

  int receives() const { return receives_; }

 private:
  int receives_ = 0, tests_ = 0;
};

void wait_in_vain(Transport& transport, int peer, const char* context) {
  double never = 0;
  Request request = transport.irecv(&never, sizeof never, peer, 7);
  EXPECT_THROW(transport.wait(request, Deadline::after(300ms), context), TimeoutError);
}

void send_word(Transport& transport, int peer) {
  const double word = 1;
  Request request = transport.isend(&word, sizeof word, peer, 8);
  transport.wait(request, limit(), "the send of a word");
}

void await_word(Transport& transport, int peer, const char* context) {
  double word = 0;
  Request request = transport.irecv(&word, sizeof word, peer, 8);
  transport.wait(request, limit(), context);
}

TEST(SharedFlights, ARankThatGivesUpLearnsWhatTheOthersWaitFor) {
  with_ranks(3, [](Transport& transport) {
    Rank rank(transport);
    if (transport.rank() == 0) {
      wait_in_vain(*rank.recorded, 1, "stage 0, gradient");
      const Flights flights = rank.shared.ask(10s);
      ASSERT_EQ(flights.size(), 3u);
      const std::string line = who_waits(flights);
      EXPECT_TRUE(line.starts_with("a cycle of waits: rank 0 waits for rank 1 since ")) << line;
      EXPECT_NE(line.find("(stage 0, gradient), rank 1 waits for rank 2 since "), std::string::npos) << line;
      EXPECT_NE(line.find("(stage 1, gradient), rank 2 waits for rank 0 since "), std::string::npos) << line;
      // The processes of a machine share a clock, which the others said to be ahead.
      for (const auto& [of, events] : flights)
        EXPECT_NEAR(events.back().seconds + 1000.0 * of, flights.at(0).back().seconds, 100.0) << "rank " << of;
      send_word(transport, 2);
    } else if (transport.rank() == 1) {
      await_word(*rank.recorded, 2, "stage 1, gradient");
    } else {
      await_word(*rank.recorded, 0, "stage 2, gradient");
      send_word(transport, 1);
    }
    barrier(transport, limit());
  });
}

TEST(SharedFlights, RanksThatGiveUpTogetherAnswerEachOther) {
  with_ranks(2, [](Transport& transport) {
    Rank rank(transport);
    wait_in_vain(*rank.recorded, 1 - transport.rank(), "a gradient");
    EXPECT_EQ(rank.shared.ask(10s).size(), 2u);
    // The other's question may come after this rank has its answers, so that it has to wait a little longer.
    barrier(rank.shared, limit());
  });
}

TEST(SharedFlights, ARankThatDoesNotAnswerIsLeftOut) {
  with_ranks(2, [](Transport& transport) {
    Rank rank(transport);
    if (transport.rank() == 0) {
      wait_in_vain(*rank.recorded, 1, "a gradient");
      const Flights flights = rank.shared.ask(200ms);
      ASSERT_EQ(flights.size(), 1u);
      EXPECT_EQ(flights.at(0).back().kind, EventKind::TimedOut);
    }
    barrier(transport, limit());  // below the shared flights, where nothing answers
  });
}

TEST(SharedFlights, ThoseThatAreGoneReceiveNoQuestions) {
  with_ranks(2, [](Transport& transport) {
    Reluctant inner(transport);
    {
      Rank gone(inner);
      Request nothing;
      gone.shared.wait(nothing, limit(), "so long that questions are looked for");
      EXPECT_EQ(inner.receives(), 1);
    }
    EXPECT_EQ(inner.receives(), 0) << "a receive is left, whose memory is freed";
    barrier(transport, limit());
    Rank rank(transport);
    if (transport.rank() == 0) {
      EXPECT_EQ(rank.shared.ask(10s).size(), 2u);
      send_word(transport, 1);
    } else {
      await_word(*rank.recorded, 0, "a word");
    }
    barrier(transport, limit());
  });
}

}  // namespace
}  // namespace plumbline::transport::flight
