#include "runtime/schedule/stage_graph.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

TEST(StageGraph, NeighboursAscendingEachOnce) {
  const StageGraph graph(4, {{2, 3}, {0, 3}, {0, 1}, {1, 2}, {0, 3}});
  EXPECT_TRUE(graph.inputs(0).empty());
  EXPECT_EQ(graph.outputs(0), (std::vector<int>{1, 3}));
  EXPECT_EQ(graph.inputs(3), (std::vector<int>{0, 2}));
  EXPECT_TRUE(graph.outputs(3).empty());
}

TEST(StageGraph, RefusesWhatIsNoEdge) {
  for (const StageEdge edge : {StageEdge{1, 1}, {2, 1}, {-1, 0}, {0, 3}, {3, 4}}) {
    EXPECT_THROW(StageGraph(3, {edge}), InputError) << edge.from << "->" << edge.to;
  }
  EXPECT_EQ(testing::refusal([] { StageGraph(3, {{0, 1}, {2, 1}}); }),
            "edge from stage 2 to stage 1: values flow from a stage to a later one, out of stages 0 to 2");
}

TEST(StageGraph, CarriesOnlyBetweenRanks) {
  const Schedule schedule{"v", 4, 1, {0, 1, 1, 0}, {{}, {}}};
  const StageGraph graph(4, {{0, 1}, {1, 2}, {2, 3}, {0, 3}});
  const auto stages_with = [&](ActionType type) {
    std::vector<int> stages;
    for (int stage = 0; stage < 4; ++stage) {
      if (carries(schedule, graph, type, stage, 0)) stages.push_back(stage);
    }
    return stages;
  };
  EXPECT_EQ(stages_with(ActionType::SEND_F), (std::vector<int>{0, 2}));
  EXPECT_EQ(stages_with(ActionType::RECV_F), (std::vector<int>{1, 3}));
  EXPECT_EQ(stages_with(ActionType::SEND_B), (std::vector<int>{1, 3}));
  EXPECT_EQ(stages_with(ActionType::RECV_B), (std::vector<int>{0, 2}));
}

}  // namespace
}  // namespace plumbline::schedule
