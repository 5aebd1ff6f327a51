#include "runtime/transport/flight/who_waits.h"

#include <gtest/gtest.h>

#include <cstring>

namespace plumbline::transport::flight {
namespace {

Event event(double seconds, EventKind kind, int peer, const char* what = "") {
  Event made{.seconds = seconds, .kind = kind, .is_receive = true, .peer = peer, .tag = 5, .bytes = 64};
  std::strncpy(made.what, what, sizeof made.what - 1);
  return made;
}

TEST(WhoWaits, NobodyInARunThatGoesOn) {
  const Flights flights = {{0, {event(1, EventKind::Receive, 1), event(2, EventKind::Done, 1)}}, {1, {}}};
  EXPECT_EQ(who_waits(flights), "");
  EXPECT_FALSE(any_timed_out(flights));
  EXPECT_EQ(who_waits({}), "");
}

TEST(WhoWaits, AllForTheRankThatDoesNot) {
  const Flights flights = {
      {0, {event(10, EventKind::Blocked, 1, "gradient of x")}},
      {1, {event(9, EventKind::Blocked, 3, "value y"), event(69, EventKind::TimedOut, 3, "value y")}},
      {2, {event(8, EventKind::Blocked, 2, "z"), event(8.5, EventKind::Done, 2)}},
      {3, {event(7, EventKind::Blocked, 1, "value w"), event(7.25, EventKind::Done, 1)}},
  };
  EXPECT_TRUE(any_timed_out(flights));
  EXPECT_EQ(
      who_waits(flights),
      "ranks 0, 1 wait for rank 3, which waits for nothing (its last event, 61.8 s before: the message from rank 1 "
      "is complete)");
  const std::string page = flight_page(flights);
  EXPECT_NE(page.find("rank 1 waits for rank 3 since 60 s (value y)\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\n    -60.000000 s  a wait for the message from rank 3: value y\n"), std::string::npos) << page;
}

TEST(WhoWaits, ARankWithoutEvents) {
  EXPECT_EQ(who_waits({{0, {event(10, EventKind::Blocked, 1, "x")}}}), "rank 0 waits for rank 1, which left no events");
}

TEST(WhoWaits, ARankWhoseProcessIsStoppedIsInNoCycle) {
  Flights flights = {{0, {event(10, EventKind::Blocked, 1, "x")}}, {1, {event(9, EventKind::Blocked, 0, "y")}}};
  EXPECT_EQ(who_waits(flights),
            "a cycle of waits: rank 0 waits for rank 1 since 0 s (x), rank 1 waits for rank 0 since 1 s (y)");
  flights[1].push_back({.seconds = 12, .kind = EventKind::Stopped});
  EXPECT_EQ(
      who_waits(flights),
      "rank 0 waits for rank 1, whose process is stopped (its last event, 3 s before: a wait for the message from "
      "rank 0: y)");
  EXPECT_NE(flight_page(flights).find("     0.000000 s  the process is stopped\n"), std::string::npos)
      << flight_page(flights);
  flights[1] = {{.seconds = 12, .kind = EventKind::Stopped}};
  EXPECT_EQ(who_waits(flights), "rank 0 waits for rank 1, whose process is stopped");
}

TEST(WhoWaits, OneMessageIsNoCycle) {
  Flights flights = {{0, {event(10, EventKind::Blocked, 1, "x")}}, {1, {event(9, EventKind::Blocked, 0, "y")}}};
  flights[1].back().is_receive = false;
  EXPECT_EQ(
      who_waits(flights),
      "a message that both sides wait for, so one of them was stopped, or it is lost: rank 0 waits for rank 1 since "
      "0 s (x), rank 1 waits for rank 0 to take a message since 1 s (y)");
  flights[1].back().tag = 6;
  EXPECT_TRUE(who_waits(flights).starts_with("a cycle of waits: "));
}

TEST(WhoWaits, InACycleAlthoughOthersWaitToo) {
  Flights flights = {
      {0, {event(10, EventKind::Blocked, 2, "a")}},
      {1, {event(10, EventKind::Blocked, 3, "b")}},
      {2, {event(11, EventKind::Blocked, 1, "c")}},
      {3, {event(12, EventKind::Blocked, 2, "d\nd")}},
  };
  EXPECT_EQ(
      who_waits(flights),
      "a cycle of waits: rank 2 waits for rank 1 since 1 s (c), rank 1 waits for rank 3 since 2 s (b), rank 3 waits "
      "for rank 2 since 0 s (d d)");
  flights[3].back().is_receive = false;
  EXPECT_NE(who_waits(flights).find("rank 3 waits for rank 2 to take a message since 0 s"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::transport::flight
