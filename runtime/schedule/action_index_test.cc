#include "runtime/schedule/action_index.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/testing/random_schedule.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

TEST(ActionIndex, AgreesWithASearchOfTheList) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const testing::RandomPipe pipe = testing::random_pipe(random);
    const Schedule schedule = lower(pipe.compute, pipe.edges);
    const ActionIndex index(schedule);
    for (int stage = 0; stage < schedule.stages; ++stage) {
      const auto& actions = schedule.ranks[schedule.rank_of_stage[stage]];
      for (int m = 0; m < schedule.microbatches; ++m) {
        for (ActionType type : action_types()) {
          const auto found = std::find(actions.begin(), actions.end(), Action{stage, type, m});
          const int expected = found == actions.end() ? -1 : static_cast<int>(found - actions.begin());
          ASSERT_EQ(index.position({stage, type, m}), expected)
              << "seed " << seed << " " << to_string({stage, type, m});
        }
      }
    }
  }
}

TEST(ActionIndex, FirstCountsAndStrangersAreNotEntered) {
  const Schedule schedule{"s", 2, 1, {0, 1}, {{{0, F, 0}, {1, F, 0}, {0, F, 0}, {0, F, 7}}, {{1, B, 0}}}};
  const ActionIndex index(schedule);
  EXPECT_EQ(index.position({0, F, 0}), 0);
  EXPECT_EQ(index.position({1, F, 0}), -1) << "stands on a rank without its stage";
  EXPECT_EQ(index.position({1, B, 0}), 0);
  for (const Action action : {Action{0, F, 7}, {0, F, 1}, {0, F, -1}, {2, F, 0}, {-1, F, 0}}) {
    EXPECT_FALSE(index.in_range(action));
    EXPECT_EQ(index.position(action), -1);
  }
}

TEST(ActionIndex, EachMicrobatchOnTheRankOfItsReplica) {
  Schedule schedule{"s", 2, 2, {0, 1, 1, 0}, {{{0, F, 0}, {1, F, 1}}, {{0, F, 1}, {1, F, 0}, {0, F, 0}}}};
  schedule.replica_of_microbatch = {0, 1};
  const ActionIndex index(schedule);
  EXPECT_EQ(index.position({0, F, 0}), 0);
  EXPECT_EQ(index.position({1, F, 1}), 1);
  EXPECT_EQ(index.position({0, F, 1}), 0);
  EXPECT_EQ(index.position({1, F, 0}), 1);
}

TEST(ActionIndex, WhatIsDoneForAWholeStageIsNotEntered) {
  const Schedule schedule{"s", 1, 1, {0}, {{{0, UNSHARD, kNoMicrobatch}, {0, F, 0}}}};
  const ActionIndex index(schedule);
  EXPECT_EQ(index.position({0, UNSHARD, kNoMicrobatch}), -1);
  EXPECT_EQ(index.position({0, UNSHARD, 0}), -1);
  EXPECT_EQ(index.position({0, F, 0}), 1);
}

TEST(ActionIndex, InputBackward) {
  const Schedule schedule{"s", 1, 3, {0}, {{{0, I, 0}, {0, W, 0}, {0, B, 1}}}};
  const ActionIndex index(schedule);
  EXPECT_EQ(input_backward(index, 0, 0), (Action{0, I, 0}));
  EXPECT_EQ(input_backward(index, 0, 1), (Action{0, B, 1}));
  EXPECT_EQ(input_backward(index, 0, 2), (Action{0, B, 2})) << "absent";
}

}  // namespace
}  // namespace plumbline::schedule
