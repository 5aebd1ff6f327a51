#include "runtime/transport/flight/flight_recorder.h"

#include <gtest/gtest.h>

#include <optional>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/transport/flight/who_waits.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::transport::flight {
namespace {

Deadline soon(int milliseconds) { return Deadline::after(std::chrono::milliseconds(milliseconds)); }

/// Runs `body` on thread ranks with recorders; returns what they left.
template <typename Body>
Flights flights_of(int ranks, const Body& body) {
  const TemporaryFolder folder;
  const auto file = [&](int rank) { return folder / std::to_string(rank); };
  run_thread_ranks(ranks, [&](Transport& transport) {
    FlightLog log(file(transport.rank()));
    const std::unique_ptr<Transport> recorded = record_flight(transport, log);
    body(*recorded);
  });
  Flights flights;
  for (int rank = 0; rank < ranks; ++rank) flights[rank] = read_flight_log(file(rank)).value();
  return flights;
}

TEST(FlightRecorder, ADeadlockIsACycle) {
  const Flights flights = flights_of(3, [](Transport& transport) {
    if (transport.rank() == 2) return;
    const int other = 1 - transport.rank();
    double value = 0;
    Request request = transport.irecv(&value, sizeof value, other, 7);
    EXPECT_THROW(transport.wait(request, soon(300), "stage 0, micro-batch 1: value h"), TimeoutError);
  });
  EXPECT_TRUE(any_timed_out(flights));
  const std::string line = who_waits(flights);
  EXPECT_TRUE(line.starts_with("a cycle of waits: rank 0 waits for rank 1 since 0.")) << line;
  EXPECT_NE(line.find(" s (stage 0, micro-batch 1: value h), rank 1 waits for rank 0 since 0."), std::string::npos)
      << line;
}

TEST(FlightRecorder, WhatIsReceivedIsReceivedAsWithout) {
  const Flights flights = flights_of(2, [](Transport& transport) {
    const int other = 1 - transport.rank();
    for (int64_t i = 0; i < 1000; ++i) {
      const int64_t mine = 10 * i + transport.rank();
      int64_t theirs = -1;
      Request receive = transport.irecv(&theirs, sizeof theirs, other, i % 5);
      Request send = transport.isend(&mine, sizeof mine, other, i % 5);
      transport.wait(receive, soon(20'000), "the other's number");
      transport.wait(send, soon(20'000), "mine");
      ASSERT_EQ(theirs, 10 * i + other);
    }
  });
  EXPECT_FALSE(any_timed_out(flights));
  EXPECT_EQ(who_waits(flights), "");
  for (const auto& [rank, events] : flights) {
    EXPECT_EQ(events.size(), kFlightEvents - 1);
    // The events of a message: posted, and blocked only together with done.
    int blocked = 0;
    for (const Event& event : events) {
      EXPECT_EQ(event.peer, 1 - rank);
      EXPECT_EQ(event.bytes, 8u);
      if (event.kind == EventKind::Blocked) ++blocked;
      if (event.kind == EventKind::Done) --blocked;
      EXPECT_LE(std::abs(blocked), 1);
    }
  }
}

TEST(FlightRecorder, AMessageOfAnotherSizeIsRefusedAsWithout) {
  flights_of(2, [](Transport& transport) {
    if (transport.rank() == 1) {
      const int value = 0;
      Request send = transport.isend(&value, sizeof value, 0, 1);
      EXPECT_NO_THROW(transport.wait(send, soon(20'000), "a small message"));
      return;
    }
    double value = 0;
    Request request = transport.irecv(&value, sizeof value, 1, 1);
    EXPECT_THROW(transport.wait(request, soon(20'000), "a message of 8 bytes"), Error);
  });
}

}  // namespace
}  // namespace plumbline::transport::flight
