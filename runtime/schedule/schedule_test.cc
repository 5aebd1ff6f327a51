#include "runtime/schedule/schedule.h"

#include <gtest/gtest.h>

namespace plumbline::schedule {
namespace {

// Two ranks, a V: stages 0 and 3 on rank 0, 1 and 2 on rank 1.
Schedule v_shaped() {
  Schedule schedule{"v", 4, 1, {0, 1, 1, 0}, {}};
  schedule.ranks = {{{0, ActionType::F, 0}, {3, ActionType::F, 0}, {3, ActionType::B, 0}, {0, ActionType::B, 0}},
                    {{1, ActionType::F, 0}, {2, ActionType::F, 0}, {2, ActionType::B, 0}, {1, ActionType::B, 0}}};
  return schedule;
}

TEST(Schedule, StagesOfRank) {
  EXPECT_EQ(stages_of_rank(v_shaped(), 0), (std::vector<int>{0, 3}));
  EXPECT_EQ(stages_of_rank(v_shaped(), 1), (std::vector<int>{1, 2}));
  EXPECT_TRUE(stages_of_rank(v_shaped(), 2).empty());
}

TEST(Schedule, ChainEdges) {
  EXPECT_TRUE(chain_edges(1).empty());
  EXPECT_EQ(chain_edges(3), (std::vector<StageEdge>{{0, 1}, {1, 2}}));
}

TEST(Schedule, HasBackward) {
  Schedule schedule = v_shaped();
  EXPECT_TRUE(has_backward(schedule));
  for (const ActionType half : {ActionType::I, ActionType::W}) {
    schedule.ranks = {{{0, ActionType::F, 0}}, {{0, half, 0}}};
    EXPECT_TRUE(has_backward(schedule));
  }
  schedule.ranks = {{{0, ActionType::F, 0}}, {{0, ActionType::SEND_B, 0}, {0, ActionType::UNSHARD, kNoMicrobatch}}};
  EXPECT_FALSE(has_backward(schedule));
}

TEST(Schedule, CountsAndCommunication) {
  Schedule schedule = v_shaped();
  EXPECT_EQ(action_count(schedule), 8u);
  EXPECT_FALSE(has_communication(schedule));
  schedule.ranks[1].push_back({1, ActionType::SEND_B, 0});
  EXPECT_TRUE(has_communication(schedule));
}

TEST(Schedule, ShapeProblems) {
  EXPECT_EQ(shape_problem(v_shaped()), "");
  const auto problem_of = [](auto&& change) {
    Schedule schedule = v_shaped();
    change(schedule);
    return shape_problem(schedule);
  };
  EXPECT_EQ(problem_of([](Schedule& s) { s.ranks.clear(); }), "the schedule has no ranks");
  EXPECT_EQ(problem_of([](Schedule& s) { s.stages = 0; }), "the schedule has 0 stages; at least 1 is needed");
  EXPECT_EQ(problem_of([](Schedule& s) { s.microbatches = -1; }),
            "the schedule has -1 micro-batches; at least 1 is needed");
  EXPECT_EQ(problem_of([](Schedule& s) { s.rank_of_stage.pop_back(); }), "rank_of_stage has 3 entries for 4 stages");
  EXPECT_EQ(problem_of([](Schedule& s) { s.rank_of_stage[2] = 2; }), "stage 2 is on rank 2; there are 2 ranks");
  EXPECT_EQ(problem_of([](Schedule& s) { s.rank_of_stage[2] = -1; }), "stage 2 is on rank -1; there are 2 ranks");
  EXPECT_EQ(problem_of([](Schedule& s) { s.rank_of_stage = {0, 0, 0, 0}; }), "rank 1 holds no stage");
  EXPECT_EQ(problem_of([](Schedule& s) { s.microbatches = 2000000000; }),
            "the schedule has 8 actions; 4 stages and 2000000000 micro-batches need at least 8000000000");
}

}  // namespace
}  // namespace plumbline::schedule
