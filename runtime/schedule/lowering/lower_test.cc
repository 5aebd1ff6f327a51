#include "runtime/schedule/lowering/lower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/error.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/random_schedule.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

TEST(Lower, InsertsDirectlyBesideTheCompute) {
  const Schedule schedule = make_schedule("1f1b", 2, 2);
  EXPECT_EQ(to_csv(insert_communication(schedule, StageGraph(2, chain_edges(2)))),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\r\n"
            "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\r\n");
}

TEST(Lower, PostsReceivesOneComputeEarlier) {
  EXPECT_EQ(to_csv(lower(make_schedule("1f1b", 2, 2), chain_edges(2))),
            "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0RECV_B1,0B0,0B1\r\n"
            "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\r\n");
  EXPECT_EQ(to_csv(lower(make_schedule("gpipe", 3, 2), chain_edges(3))),
            "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0RECV_B1,0B0,0B1\r\n"
            "1RECV_F0,1RECV_F1,1F0,1SEND_F0,1RECV_B0,1F1,1SEND_F1,1RECV_B1,1B0,1SEND_B0,1B1,1SEND_B1\r\n"
            "2RECV_F0,2RECV_F1,2F0,2F1,2B0,2SEND_B0,2B1,2SEND_B1\r\n");
}

TEST(Lower, GradientIsNotPostedBeforeItsOwnForward) {
  EXPECT_EQ(to_csv(lower(make_schedule("1f1b", 2, 1), chain_edges(2))),
            "0F0,0SEND_F0,0RECV_B0,0B0\r\n1RECV_F0,1F0,1B0,1SEND_B0\r\n");
}

// Gradients travel after I, not after W, which needs no transfers of its own but can hide a receive.
TEST(Lower, HalvesOfABackward) {
  const Schedule schedule = make_schedule("zb-h1", 2, 3);
  EXPECT_EQ(to_csv(insert_communication(schedule, StageGraph(2, chain_edges(2)))),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0I0,0W0,0F2,0SEND_F2,0RECV_B1,0I1,0W1,0RECV_B2,0I2,0W2\r\n"
            "1RECV_F0,1F0,1I0,1SEND_B0,1RECV_F1,1F1,1I1,1SEND_B1,1W0,1RECV_F2,1F2,1I2,1SEND_B2,1W1,1W2\r\n");
  EXPECT_EQ(to_csv(lower(schedule, chain_edges(2))),
            "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0I0,0W0,0RECV_B1,0F2,0SEND_F2,0I1,0RECV_B2,0W1,0I2,0W2\r\n"
            "1RECV_F0,1F0,1RECV_F1,1I0,1SEND_B0,1F1,1I1,1SEND_B1,1RECV_F2,1W0,1F2,1I2,1SEND_B2,1W1,1W2\r\n");
}

TEST(Lower, SkipEdgesAndNeighboursOnOneRank) {
  // A V: 0 and 3 on rank 0; 1 and 2 on rank 1; 0 also feeds 3 on its own rank and 2 on the other.
  const Schedule compute = parse_csv("0F0,3F0,3B0,0B0\r\n1F0,2F0,2I0,1I0,2W0,1W0\r\n", "v");
  EXPECT_EQ(to_csv(lower(compute, {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {0, 2}})),
            "3RECV_F0,0F0,0SEND_F0,3F0,0RECV_B0,3B0,3SEND_B0,0B0\r\n"
            "1RECV_F0,2RECV_F0,1F0,2F0,2SEND_F0,2RECV_B0,2I0,2SEND_B0,1I0,1SEND_B0,2W0,1W0\r\n");
}

TEST(Lower, OneRankAndForwardOnly) {
  const Schedule alone = parse_csv("0F0,1F0,1B0,0B0\r\n", "alone");
  EXPECT_EQ(lower(alone, chain_edges(2)), alone);
  EXPECT_EQ(to_csv(lower(parse_csv("0F0,0F1\r\n1F0,1F1\r\n", "f"), chain_edges(2))),
            "0F0,0SEND_F0,0F1,0SEND_F1\r\n1RECV_F0,1RECV_F1,1F0,1F1\r\n");
}

// A group's receives are posted before it and may pass earlier actions; its results are sent after it.
TEST(Lower, Groups) {
  const Schedule compute = parse_csv(
      "0F0,0F1,3F0,(0F2;3B0)OVERLAP_F_B,(3F1;0B0)OVERLAP_F_B,3B1,3F2,3B2,0B1,0B2\n"
      "1F0,2F0,1F1,2F1,2B0,1B0,1F2,2B1,1B1,2F2,2B2,1B2\n",
      "groups");
  EXPECT_EQ(to_csv(insert_communication(compute, StageGraph(4, chain_edges(4)))),
            "0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,3F0,(0F2;3B0)OVERLAP_F_B,0SEND_F2,3SEND_B0,3RECV_F1,0RECV_B0,"
            "(3F1;0B0)OVERLAP_F_B,3B1,3SEND_B1,3RECV_F2,3F2,3B2,3SEND_B2,0RECV_B1,0B1,0RECV_B2,0B2\r\n"
            "1RECV_F0,1F0,2F0,2SEND_F0,1RECV_F1,1F1,2F1,2SEND_F1,2RECV_B0,2B0,1B0,1SEND_B0,1RECV_F2,1F2,2RECV_B1,2B1,"
            "1B1,1SEND_B1,2F2,2SEND_F2,2RECV_B2,2B2,1B2,1SEND_B2\r\n");
  EXPECT_EQ(to_csv(lower(compute, chain_edges(4))),
            "0F0,0SEND_F0,3RECV_F0,0F1,0SEND_F1,3F0,3RECV_F1,0RECV_B0,(0F2;3B0)OVERLAP_F_B,0SEND_F2,3SEND_B0,"
            "(3F1;0B0)OVERLAP_F_B,3RECV_F2,3B1,3SEND_B1,3F2,0RECV_B1,3B2,3SEND_B2,0RECV_B2,0B1,0B2\r\n"
            "1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1F1,2RECV_B0,2F1,2SEND_F1,2B0,1RECV_F2,1B0,1SEND_B0,2RECV_B1,1F2,2B1,"
            "1B1,1SEND_B1,2F2,2SEND_F2,2RECV_B2,2B2,1B2,1SEND_B2\r\n");
}

TEST(Lower, NoGradientIsPostedBeforeTheGroupWithItsForward) {
  EXPECT_EQ(to_csv(lower(parse_csv("0F0,(0B0;0F1)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n", "s"), chain_edges(2))),
            "0F0,0SEND_F0,0RECV_B0,(0B0;0F1)OVERLAP_F_B,0SEND_F1,0RECV_B1,0B1\r\n"
            "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\r\n");
}

// Two stages on both ranks; micro-batch 0 goes from rank 0 to 1, micro-batch 1 from 1 to 0.
TEST(Lower, Replicas) {
  EXPECT_EQ(to_csv(lower(parse_csv("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n", "s"), chain_edges(2))),
            "1RECV_F1,0F0,0SEND_F0,1F1,0RECV_B0,1B1,1SEND_B1,0B0\r\n"
            "1RECV_F0,0F1,0SEND_F1,1F0,0RECV_B1,1B0,1SEND_B0,0B1\r\n");
}

TEST(Lower, RefusesWithRankPositionAndReason) {
  const auto refused = [](std::string_view text) {
    return testing::refusal([&] { lower(parse_csv(text, "s"), chain_edges(2)); });
  };
  EXPECT_EQ(refused("0F0,0B0,0WAIT_SEND_F0\n1F0,1B0\n"),
            "schedule s: rank 0, position 2 (0WAIT_SEND_F0): a schedule with transfers is lowered already");
}

TEST(Lower, ActionsOfWholeStagesKeepTheirPlaces) {
  EXPECT_EQ(to_csv(lower(parse_csv("0F0,0B0,0REDUCE_GRAD\n1UNSHARD,1F0,1B0,1RESHARD\n", "s"), chain_edges(2))),
            "0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\r\n1RECV_F0,1UNSHARD,1F0,1B0,1SEND_B0,1RESHARD\r\n")
      << "only receives are posted earlier";
}

TEST(Lower, Refuses) {
  const Schedule compute = make_schedule("gpipe", 2, 2);
  EXPECT_THROW(lower(lower(compute, chain_edges(2)), chain_edges(2)), InputError) << "lowered twice";
  EXPECT_THROW(lower(compute, {{1, 0}}), InputError);
  EXPECT_THROW(lower(compute, {{0, 2}}), InputError);
  Schedule damaged = compute;
  damaged.rank_of_stage.pop_back();
  EXPECT_THROW(lower(damaged, chain_edges(2)), InputError);
  damaged = compute;
  damaged.ranks[0][1].stage = 5;
  EXPECT_THROW(lower(damaged, chain_edges(2)), InputError);
}

// What must hold for any schedule: the computations keep their order; each transfer that an edge requires appears once,
// and no other does; sends follow their producers; between a receive and its user lies one computation, or none if the
// user is the rank's first or follows the forward that the receive must not pass.
TEST(Lower, HoldsOnRandomSchedules) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    const testing::RandomPipe pipe = testing::random_pipe(random);
    const Schedule lowered = lower(pipe.compute, pipe.edges);
    const std::string context = "seed " + std::to_string(seed) + "\n" + testing::show(lowered, pipe.edges);

    std::set<std::string> wanted, found;
    const auto& rank_of = pipe.compute.rank_of_stage;
    for (const StageEdge& e : pipe.edges) {
      if (rank_of[e.from] == rank_of[e.to]) continue;
      for (int m = 0; m < lowered.microbatches; ++m) {
        wanted.insert({to_string({e.from, SEND_F, m}), to_string({e.to, RECV_F, m})});
        if (!pipe.forward_only) wanted.insert({to_string({e.to, SEND_B, m}), to_string({e.from, RECV_B, m})});
      }
    }
    for (std::size_t rank = 0; rank < lowered.ranks.size(); ++rank) {
      const auto& actions = lowered.ranks[rank];
      std::vector<Action> compute;
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const Action& a = actions[i];
        if (is_compute(a.type)) {
          compute.push_back(a);
          continue;
        }
        ASSERT_TRUE(found.insert(to_string(a)).second) << to_string(a) << " twice, " << context;
        const auto is_partner = [&](const Action& c) {
          const bool forward = a.type == SEND_F || a.type == RECV_F;
          return c.stage == a.stage && c.microbatch == a.microbatch &&
                 (forward ? c.type == F : c.type == B || c.type == I);
        };
        if (a.type == SEND_F || a.type == SEND_B) {
          ASSERT_TRUE(i > 0 && is_partner(actions[i - 1])) << to_string(a) << ", " << context;
          continue;
        }
        std::vector<Action> passed;
        std::size_t user = i + 1;
        for (; user < actions.size() && !is_partner(actions[user]); ++user) {
          if (is_compute(actions[user].type)) passed.push_back(actions[user]);
        }
        ASSERT_LT(user, actions.size()) << to_string(a) << ", " << context;
        const bool first = compute.empty();
        const bool behind_its_forward =
            !first && a.type == RECV_B && compute.back() == Action{a.stage, F, a.microbatch};
        ASSERT_LE(passed.size(), 1u) << to_string(a) << ", " << context;
        ASSERT_TRUE(passed.size() == 1 || first || behind_its_forward) << to_string(a) << ", " << context;
      }
      ASSERT_EQ(compute, pipe.compute.ranks[rank]) << context;
    }
    ASSERT_EQ(found, wanted) << context;
    ASSERT_TRUE(testing::runs_to_its_end(lowered, pipe.edges, pipe.forward_only, true)) << context;
  }
}

}  // namespace
}  // namespace plumbline::schedule
