#include "runtime/schedule/text/placement.h"

#include <gtest/gtest.h>

#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

std::string refusal_of(std::string_view text) {
  return testing::refusal([&] { parse_csv(text, "s.csv"); });
}

TEST(Placement, ReplicasByTheirFirstMicrobatch) {
  // Two ranks, two stages; micro-batches 0 and 3 go down, 1 and 2 go up.
  const Schedule schedule = parse_csv("0F0,1F1,0F3,1F2\n0F1,1F0,0F2,1F3\n", "s");
  EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(schedule.replica_of_microbatch, (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(schedule.replicas(), 2);
  EXPECT_EQ(schedule.rank_of(0, 2), 1);
  EXPECT_EQ(schedule.rank_of(1, 3), 1);
  EXPECT_EQ(shape_problem(schedule), "");

  const Schedule other = parse_csv("0F1,1F0\n0F0,1F1\n", "s");
  EXPECT_EQ(other.rank_of_stage, (std::vector<int>{1, 0, 0, 1})) << "replica 0 is that of micro-batch 0";
  EXPECT_EQ(other.replica_of_microbatch, (std::vector<int>{0, 1}));
}

TEST(Placement, ThreeReplicas) {
  const Schedule schedule = parse_csv("0F0,1F2\n0F1,1F0\n0F2,1F1\n", "s");
  EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 1, 2, 2, 0}));
  EXPECT_EQ(schedule.replica_of_microbatch, (std::vector<int>{0, 1, 2}));
}

// A damaged schedule may lack an action; the others imply its rank.
TEST(Placement, AStageThatLacksAMicrobatch) {
  const Schedule schedule = parse_csv("0F0,1F1,0F2\n0F1,1F0\n", "s");
  EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(schedule.replica_of_microbatch, (std::vector<int>{0, 1, 0}));
}

TEST(Placement, RefusesWhatIsNoReplica) {
  EXPECT_EQ(refusal_of("0F0,1F0\n2F0,,1B0\n"),
            "s.csv: row 2 (rank 1), cell 3: 1B0: micro-batch 0 of stage 1 is on rank 0 already (row 1)");
  EXPECT_EQ(refusal_of("0F0,0F1,1F0\n2F0,2F1,,1F1\n"),
            "s.csv: row 2 (rank 1), cell 4: 1F1: stage 1 does micro-batches 0 and 1 on two ranks, 0 and 1, but stage 0 "
            "on one; where stages are on several ranks, all divide the micro-batches in the same way");
  EXPECT_EQ(
      refusal_of("0F0,1F1,1F0\n0F1\n"),
      "s.csv: row 1 (rank 0), cell 2: 1F1: stage 1 does micro-batches 0 and 1 on one rank, 0, but stage 0 on two; "
      "where stages are on several ranks, all divide the micro-batches in the same way");
  EXPECT_EQ(refusal_of("0F0,1F1,0F3,1F3\n0F1,1F0,0F2,1F2\n"),
            "s.csv: row 2 (rank 1), cell 4: 1F2: stage 1 does micro-batches 1 and 2 on two ranks, 0 and 1, but stage 0 "
            "on one; where stages are on several ranks, all divide the micro-batches in the same way");
  EXPECT_EQ(refusal_of("0F0,1F0\n0F1\n"),
            "s.csv: stage 1 is on rank 0 only, but stage 0 on 2; where stages are on several ranks, all divide the "
            "micro-batches in the same way");
  EXPECT_EQ(refusal_of("0F0,1F1\n0F2,1F0\n"),
            "s.csv: stage 0 is on several ranks, and no stage has all micro-batches, so replicas cannot be told apart");
}

// Numbers in a hostile text must not become the size of a table.
TEST(Placement, IsBoundedByTheText) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i) + "F" + std::to_string(i) + "\n";
  EXPECT_NE(shape_problem(parse_csv(text, "s")), "") << "nine million pairs of stage and micro-batch, 3000 actions";
  text = "0F0\n0F1\n0F2\n";
  for (int stage = 1; stage < 3000; ++stage) text += std::to_string(stage) + "F0\n";
  EXPECT_TRUE(refusal_of(text).starts_with("s.csv: stage 1 is on rank 3 only, but stage 0 on 3;")) << refusal_of(text);
}

}  // namespace
}  // namespace plumbline::schedule
