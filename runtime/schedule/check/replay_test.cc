#include "runtime/schedule/check/replay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/random_schedule.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::schedule {
namespace {

Replay play(const Schedule& schedule, const std::vector<StageEdge>& edges) {
  return replay(schedule, StageGraph(schedule.stages, edges), ActionIndex(schedule));
}

TEST(Replay, RunsEveryActionOnceInRankOrder) {
  for (const bool lowered : {false, true}) {
    Schedule schedule = make_schedule("1f1b", 4, 6);
    if (lowered) schedule = lower(schedule, chain_edges(4));
    const Replay played = play(schedule, chain_edges(4));
    EXPECT_EQ(played.deadlock, "");
    EXPECT_EQ(played.order.size(), action_count(schedule));
    std::vector<int> next(4);
    for (const Place& step : played.order) EXPECT_EQ(step.position, next[step.rank]++);
  }
}

TEST(Replay, NamesTheCycle) {
  // Rank 0 wants the gradient of micro-batch 1 first; rank 1 makes it only after a forward that rank 0 executes later.
  const Schedule schedule = parse_csv("0F0,0B0,0F1,0B1\r\n1F0,1F1,1B0,1B1\r\n", "s");
  EXPECT_EQ(play(schedule, chain_edges(2)).deadlock,
            "deadlock, a cycle: rank 0, position 1 (0B0) waits for 1B0 at rank 1, position 2; "
            "rank 1, position 1 (1F1) waits for 0F1 at rank 0, position 2");
  EXPECT_EQ(play(lower(schedule, chain_edges(2)), chain_edges(2)).deadlock,
            "deadlock, a cycle: rank 0, position 3 (0B0) waits for 1SEND_B0 at rank 1, position 5; "
            "rank 1, position 3 (1F1) waits for 0SEND_F1 at rank 0, position 5");
}

TEST(Replay, LeavesOutRanksThatOnlyWaitForTheCycle) {
  // Rank 0 waits for rank 1, which is in a cycle with rank 2.
  const Schedule schedule = parse_csv("0F0,0B0,0F1,0B1\r\n1F0,1B0,1F1,1B1\r\n2F0,2F1,2B0,2B1\r\n", "s");
  const std::string deadlock = play(schedule, chain_edges(3)).deadlock;
  EXPECT_TRUE(deadlock.starts_with("deadlock, a cycle: ")) << deadlock;
  const Schedule with_bystander = parse_csv("0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n2F0,2F1,2B0,2B1\r\n", "s");
  EXPECT_EQ(play(with_bystander, chain_edges(3)).deadlock,
            "deadlock, a cycle: rank 1, position 1 (1B0) waits for 2B0 at rank 2, position 2; "
            "rank 2, position 1 (2F1) waits for 1F1 at rank 1, position 2");
}

TEST(Replay, NamesTheMissingPartner) {
  EXPECT_EQ(play(parse_csv("0F0\r\n1F0,1F1\r\n", "s"), chain_edges(2)).deadlock,
            "deadlock: rank 1, position 1 (1F1) waits for 0F1, which rank 0 never does");
  EXPECT_EQ(play(parse_csv("0F0\r\n1RECV_F0,1F0\r\n", "s"), chain_edges(2)).deadlock,
            "deadlock: rank 1, position 1 (1F0) waits for 0SEND_F0, which rank 0 never does");
  EXPECT_EQ(play(parse_csv("0F0,0SEND_F0\r\n1F0\r\n", "s"), chain_edges(2)).deadlock,
            "deadlock: rank 1, position 0 (1F0) waits for 1RECV_F0, which rank 1 never does");
  EXPECT_EQ(play(parse_csv("0W0,0I0,0F0\r\n", "s"), {}).deadlock,
            "deadlock, a cycle: rank 0, position 0 (0W0) waits for 0I0 at rank 0, position 1");
}

// The judge retries ranks again and again; replay wakes them. Both must agree on whether the lists can finish.
TEST(Replay, AgreesWithTheJudgeOnShuffledOrders) {
  int finished = 0, stuck = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    const testing::RandomPipe pipe = testing::random_pipe(random);
    const bool lowered = seed % 2 == 1;
    Schedule schedule = lowered ? lower(pipe.compute, pipe.edges) : pipe.compute;
    for (unsigned swaps = random() % 4; swaps > 0; --swaps) {
      auto& actions = schedule.ranks[random() % schedule.ranks.size()];
      const std::size_t at = random() % actions.size();
      std::swap(actions[at], actions[random() % 2 == 0 ? random() % actions.size() : (at + 1) % actions.size()]);
    }
    const bool expected = testing::runs_to_its_end(schedule, pipe.edges, pipe.forward_only, lowered);
    const Replay played = play(schedule, pipe.edges);
    ASSERT_EQ(played.deadlock.empty(), expected) << "seed " << seed << " " << played.deadlock << "\n"
                                                 << testing::show(schedule, pipe.edges);
    ASSERT_EQ(played.order.size() == action_count(schedule), expected) << "seed " << seed;
    ++(expected ? finished : stuck);
  }
  EXPECT_GT(finished, 300);
  EXPECT_GT(stuck, 300);
}

// The order that replay reports is valid: each action finds its needs met, a group all of them at its beginning.
TEST(Replay, OrderIsOneInWhichAllCanRun) {
  const testing::RandomOptions everything{.groups = true, .replicas = true};
  for (unsigned seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    const testing::RandomPipe pipe = testing::random_pipe(random, everything);
    const bool lowered = seed % 2 == 1;
    const Schedule schedule = lowered ? testing::random_lowered(pipe, random, everything) : pipe.compute;
    const Replay played = play(schedule, pipe.edges);
    ASSERT_EQ(played.order.size(), action_count(schedule)) << "seed " << seed << " " << played.deadlock;
    testing::Texts done;
    std::vector<std::string> of_group;
    for (const Place& step : played.order) {
      const Action& action = schedule.ranks[step.rank][step.position];
      ASSERT_TRUE(testing::can_run(action, schedule, pipe.edges, testing::is_lowered(schedule), done))
          << "seed " << seed << " " << describe_position(schedule, step) << "\n"
          << testing::show(schedule, pipe.edges);
      of_group.push_back(to_string(action));
      if (action.overlaps_next) continue;
      done.insert(of_group.begin(), of_group.end());
      of_group.clear();
    }
  }
}

// A SEND that its rank must wait at appears in the order where it begins: its receiver continues before it ends.
TEST(Replay, ABlockingSendStandsWhereItBegins) {
  const Schedule schedule =
      testing::schedule_of({"0F0 0SEND_F0", "1RECV_F0 1F0 1SEND_F0", "2RECV_F0 2F0"}, {0, 1, 2}, 1);
  const std::vector<StageEdge> edges = {{0, 1}, {0, 2}, {1, 2}};
  const Replay played = replay(schedule, StageGraph(3, edges), ActionIndex(schedule), {.buffers = 0, .blocking = true});
  EXPECT_EQ(played.deadlock, "");
  EXPECT_EQ(played.order.size(), 7u);
}

TEST(Replay, NamesTheMemberOfAGroupThatWaits) {
  EXPECT_EQ(play(testing::schedule_of({"0F0 0F1& 0B0", "1F0 1F1 1B1"}, {0, 1}, 2), chain_edges(2)).deadlock,
            "deadlock: rank 0, position 2 (0B0) waits for 1B0, which rank 1 never does");
  EXPECT_EQ(play(testing::schedule_of({"0F0& 0B0"}, {0}, 1), {}).deadlock,
            "deadlock, a cycle: rank 0, position 1 (0B0) waits for 0F0 at rank 0, position 0");
}

}  // namespace
}  // namespace plumbline::schedule
