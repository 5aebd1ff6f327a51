#include "runtime/schedule/simulation/awaited.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/schedule/check/check.h"
#include "runtime/schedule/testing/random_schedule.h"

namespace plumbline::schedule {
namespace {

TEST(IsComplete, AgreesWithTheChecks) {
  int complete = 0, broken = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    testing::RandomPipe pipe = testing::random_pipe(random, {.groups = true, .replicas = true});
    std::string changes;
    for (unsigned left = random() % 3; left > 0; --left) changes += testing::mutate(pipe.compute, random) + "; ";
    if (!shape_problem(pipe.compute).empty() || has_communication(pipe.compute) || has_offload(pipe.compute)) continue;
    const std::vector<std::string> found = violations(pipe.compute, pipe.edges, {.forward_only = pipe.forward_only});
    const bool expected = found.empty() || found.front().starts_with("deadlock");
    ASSERT_EQ(is_complete(pipe.compute, StageGraph(pipe.compute.stages, pipe.edges), pipe.forward_only), expected)
        << "seed " << seed << ": " << changes << (found.empty() ? "" : found.front()) << "\n"
        << testing::show(pipe.compute, pipe.edges);
    ++(expected ? complete : broken);
  }
  EXPECT_GT(complete, 300);
  EXPECT_GT(broken, 300);
}

// Pairs of a million members would be steps for half an hour.
TEST(IsComplete, AGroupOfAMillionMembersTakesLinearTime) {
  const int microbatches = 1 << 20;
  Schedule schedule{.name = "one group", .stages = 1, .microbatches = microbatches, .rank_of_stage = {0}};
  schedule.ranks.resize(1);
  for (int m = 0; m < microbatches; ++m) schedule.ranks[0].push_back({0, ActionType::F, m, m + 1 < microbatches});
  EXPECT_TRUE(is_complete(schedule, StageGraph(1, {}), true));
  schedule.ranks[0].front().microbatch = microbatches - 1;
  EXPECT_FALSE(is_complete(schedule, StageGraph(1, {}), true)) << "two equal members";
}

}  // namespace
}  // namespace plumbline::schedule
