#include "runtime/schedule/orders/data_parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "runtime/schedule/check/check.h"
#include "runtime/schedule/collectives.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/lowering/passes.h"
#include "runtime/schedule/lowering/replica_actions.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

using testing::refusal;

TEST(DataParallel, ReplicasHaveRanksAndMicrobatchesOfTheirOwn) {
  const Schedule mesh = data_parallel(make_schedule("gpipe", 2, 2), 2);
  EXPECT_EQ(to_csv(mesh), "0F0,0F1,0B0,0B1\r\n1F0,1F1,1B0,1B1\r\n0F2,0F3,0B2,0B3\r\n1F2,1F3,1B2,1B3\r\n");
  EXPECT_EQ(mesh.replicas(), 2);
  EXPECT_EQ(ranks_of_stage(mesh, 1), (std::vector<int>{1, 3}));
  EXPECT_EQ(mesh, parse_csv(to_csv(mesh), mesh.name)) << "the text alone tells the replicas";
}

TEST(DataParallel, EveryActionOfAReplicaIsOnItsOwnMicrobatches) {
  const Schedule one = parse_csv("0F0,0OFFLOAD0,0F1,0RELOAD0,0B0,0B1\n", "offloading");
  EXPECT_EQ(to_csv(data_parallel(one, 2)),
            "0F0,0OFFLOAD0,0F1,0RELOAD0,0B0,0B1\r\n0F2,0OFFLOAD2,0F3,0RELOAD2,0B2,0B3\r\n");
}

TEST(DataParallel, SumsFollowTheLastMicrobatchOfEachReplica) {
  // Rank 0 has two micro-batches, rank 1 one.
  const Schedule uneven = parse_csv("0F0,0F1,0B0,0B1\n0F2,0B2\n", "uneven");
  ASSERT_EQ(uneven.replicas(), 2);
  EXPECT_EQ(to_csv(add_reduce_grad(uneven, false)),
            "0F0,0F1,0B0,0B1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\r\n0F2,0B2,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\r\n");
}

TEST(DataParallel, EveryScheduleStaysValid) {
  int of_replicas = 0;
  for (const ScheduleKind& kind : schedule_kinds())
    for (const int replicas : {1, 2, 3}) {
      const Schedule one = make_schedule(std::string(kind.name), 2, 8), mesh = data_parallel(one, replicas);
      const CheckOptions options{.forward_only = !has_backward(one)};
      EXPECT_EQ(violations(mesh, chain_edges(mesh.stages), options), std::vector<std::string>{}) << kind.name;
      EXPECT_EQ(mesh.replicas(), one.replicas() * replicas) << kind.name;
      EXPECT_EQ(action_count(mesh), action_count(one) * replicas) << kind.name;
      if (one.replicas() > 1) ++of_replicas;
      if (options.forward_only) continue;
      const Schedule sharded = with_replica_actions(mesh, {.reduce_early = true, .shard = true});
      EXPECT_EQ(violations(lower(sharded, chain_edges(mesh.stages)), chain_edges(mesh.stages)),
                std::vector<std::string>{})
          << kind.name;
      // An evaluation gathers for backwards that it leaves out, too.
      Schedule forwards = sharded;
      for (std::vector<Action>& actions : forwards.ranks)
        std::erase_if(actions, [](const Action& action) {
          return action.type != ActionType::F && action.type != ActionType::UNSHARD &&
                 action.type != ActionType::RESHARD;
        });
      for (std::vector<Action>& actions : forwards.ranks)
        for (Action& action : actions) action.overlaps_next = false;
      EXPECT_EQ(violations(lower(forwards, chain_edges(mesh.stages)), chain_edges(mesh.stages), {.forward_only = true}),
                std::vector<std::string>{})
          << kind.name;
    }
  EXPECT_GT(of_replicas, 0);
}

TEST(DataParallel, ARankThatTakesNoPartIsNamed) {
  Schedule mesh = add_reduce_grad(data_parallel(make_schedule("gpipe", 2, 2), 2), false);
  mesh.ranks[3].resize(4);
  const std::vector<std::string> found = violations(mesh, chain_edges(2));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], "rank 1, position 4 (1REDUCE_GRAD): rank 3 holds stage 1 as well and takes no part");
}

// Rank 0 waits for stage 0's sum before it begins stage 1's; rank 1 the other way round.
TEST(DataParallel, SumsThatWaitForEachOtherAreADeadlock) {
  const Schedule crossed = parse_csv(
      "0F0,1F0,1B0,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,1REDUCE_GRAD,1WAIT_REDUCE_GRAD\n"
      "0F1,1F1,1B1,0B1,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\n",
      "crossed");
  const std::vector<std::string> found = violations(crossed, chain_edges(2));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0],
            "deadlock, a cycle: rank 0, position 5 (0WAIT_REDUCE_GRAD) waits for 0REDUCE_GRAD at rank 1, position 6; "
            "rank 1, position 5 (1WAIT_REDUCE_GRAD) waits for 1REDUCE_GRAD at rank 0, position 6");
  Schedule deferred = crossed;
  for (std::vector<Action>& actions : deferred.ranks) std::swap(actions[5], actions[6]);
  EXPECT_EQ(violations(deferred, chain_edges(2)), std::vector<std::string>{});
}

// Both lists have the same kinds of action, and reach the stages in opposite orders.
TEST(DataParallel, RanksWithMirroredListsDoNotWaitForEachOther) {
  const Schedule mirrored = parse_csv("0F0,1F1,0B0,1B1\n1F0,0F1,1B0,0B1\n", "mirrored");
  ASSERT_EQ(mirrored.replicas(), 2);
  EXPECT_EQ(violations(mirrored, chain_edges(2)), std::vector<std::string>{});
  for (const bool shard : {false, true})
    EXPECT_EQ(violations(with_replica_actions(mirrored, {.reduce_early = true, .shard = shard}), chain_edges(2)),
              std::vector<std::string>{});
}

TEST(DataParallel, OperationsAreCountedByStage) {
  const Schedule mesh = add_unshard_reshard(data_parallel(make_schedule("looped-bfs", 2, 2), 2), 1, {1, 1, 1, 1});
  const Collectives collectives(mesh);
  for (int rank = 0; rank < 4; ++rank)
    for (int i = 0; i < static_cast<int>(mesh.ranks[rank].size()); ++i) {
      const int needed = collectives.needed_by(rank, i), begun = collectives.begun_by(rank, i);
      const Action& action = mesh.ranks[rank][i];
      EXPECT_EQ(begun >= 0, action.type == ActionType::UNSHARD);
      EXPECT_EQ(needed >= 0, is_compute(action.type) || action.type == ActionType::RESHARD);
      if (needed < 0) continue;
      EXPECT_EQ(collectives.operations()[needed].stage, action.stage);
    }
  const auto of_stage_0 = std::ranges::count(collectives.operations(), 0, &Collectives::Operation::stage);
  EXPECT_EQ(of_stage_0, std::ranges::count(mesh.ranks[0], (Action{0, ActionType::UNSHARD, kNoMicrobatch})));
  EXPECT_GT(of_stage_0, 1) << "gathered again for the backward";
}

// `replicas` ranks with one stage, whose gradients they sum.
Schedule many_ranks(int replicas) {
  return add_reduce_grad(data_parallel(make_schedule("gpipe", 1, 1), replicas), false);
}

// The cube of the number of ranks would be hours of steps, and its square gigabytes of places.
TEST(DataParallel, ManyRanksAreCheckedInLinearTime) {
  const int replicas = 1 << 15;
  Schedule mesh = many_ranks(replicas);
  EXPECT_EQ(violations(mesh, {}), std::vector<std::string>{});
  for (int i = 0; i < replicas; ++i) mesh.ranks[0].push_back({0, ActionType::UNSHARD, kNoMicrobatch});
  const Collectives collectives(mesh);
  ASSERT_EQ(collectives.operations().size(), replicas + 1u);
  EXPECT_EQ(collectives.ranks_of(collectives.operations()[0]).size(), static_cast<std::size_t>(replicas));
  EXPECT_EQ(collectives.operations()[0].begun_at.size(), static_cast<std::size_t>(replicas));
  EXPECT_EQ(collectives.operations()[1].begun_at, (std::vector<Place>{{0, 4}}));
  EXPECT_FALSE(violations(mesh, {}).empty());
}

TEST(DataParallel, AnOperationEndsWithItsLastRankAndNamesTheFirstThatLacks) {
  Schedule mesh = many_ranks(3);
  mesh.ranks[1].resize(2);
  EXPECT_EQ(deadlocks(mesh, {}, {}),
            (std::vector<std::string>{"deadlock: rank 0, position 3 (0WAIT_REDUCE_GRAD) waits for 0REDUCE_GRAD, which "
                                      "rank 1 never does"}));
  mesh = many_ranks(3);
  std::swap(mesh.ranks[2][2], mesh.ranks[2][3]);  // waits for nothing: it has begun nothing
  EXPECT_EQ(deadlocks(mesh, {}, {}), std::vector<std::string>{});
}

// Both ranks gather both stages for no computation: parts that are on their way may not be dropped.
TEST(DataParallel, AReshardWaitsForTheGathering) {
  const std::string first = "0UNSHARD,0RESHARD,1UNSHARD,1RESHARD,", second = "1UNSHARD,1RESHARD,0UNSHARD,0RESHARD,";
  const auto violations_of = [](const std::string& rank_0, const std::string& rank_1) {
    const std::string open = "0UNSHARD,1UNSHARD,", close = ",0RESHARD,1RESHARD\n";
    const Schedule two = parse_csv(
        rank_0 + open + "0F0,1F0,1B0,0B0" + close + rank_1 + open + "0F1,1F1,1B1,0B1" + close, "gathered twice");
    return violations(two, chain_edges(2));
  };
  EXPECT_EQ(violations_of(first, first), std::vector<std::string>{});
  EXPECT_EQ(violations_of(first, second),
            (std::vector<std::string>{"deadlock, a cycle: rank 0, position 1 (0RESHARD) waits for 0UNSHARD at rank 1, "
                                      "position 2; rank 1, position 1 (1RESHARD) waits for 1UNSHARD at rank 0, "
                                      "position 2"}));
}

// Of ranks that are not ascending, as the second replica of Chimera or DualPipe has them.
TEST(DataParallel, AnOperationNamesItsActionsInTheOrderOfTheReplicas) {
  const Schedule backwards{.name = "backwards",
                           .stages = 1,
                           .microbatches = 3,
                           .rank_of_stage = {2, 0, 1},
                           .ranks = {{{0, ActionType::F, 1}, {0, ActionType::UNSHARD, kNoMicrobatch}},
                                     {{0, ActionType::F, 2}},
                                     {{0, ActionType::UNSHARD, kNoMicrobatch}, {0, ActionType::F, 0}}},
                           .replica_of_microbatch = {0, 1, 2}};
  const Collectives collectives(backwards);
  ASSERT_EQ(collectives.operations().size(), 1u);
  EXPECT_EQ(collectives.ranks_of(collectives.operations()[0]), (std::vector<int>{2, 0, 1}));
  EXPECT_EQ(collectives.operations()[0].begun_at, (std::vector<Place>{{2, 0}, {0, 1}}));
}

TEST(DataParallel, RefusesNumbersThatDoNotFit) {
  EXPECT_EQ(refusal([] { data_parallel(make_schedule("gpipe", 2, 2), 0); }),
            "data parallelism: 0 replicas given; at least 1 is needed");
  const int most = std::numeric_limits<int>::max();
  EXPECT_EQ(refusal([&] { data_parallel(make_schedule("gpipe", 1, 1), most); }),
            "data parallelism: 2147483647 replicas x 1 stages x 1 micro-batches; at most 134217728 are accepted");
  EXPECT_EQ(refusal([] { data_parallel(make_schedule("gpipe", 4, 1024), 65536); }),
            "data parallelism: 65536 replicas x 4 stages x 1024 micro-batches; at most 134217728 are accepted");
  Schedule sparse = make_schedule("gpipe", 1, 1);
  sparse.replica_of_microbatch = {1023};
  sparse.rank_of_stage.assign(1024, 0);
  EXPECT_EQ(refusal([&] { data_parallel(sparse, 1 << 18); }),
            "data parallelism: 262144 replicas x 1024 copies of stages; at most 134217728 are accepted");
  EXPECT_EQ(refusal([] { part_of_replica(5, 2, "micro-batches"); }),
            "5 micro-batches cannot be divided among 2 data-parallel replicas; a multiple of 2 is needed");
  EXPECT_EQ(part_of_replica(6, 2, "ranks"), 3);
}

}  // namespace
}  // namespace plumbline::schedule
