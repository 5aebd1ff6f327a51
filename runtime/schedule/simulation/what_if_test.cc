#include "runtime/schedule/simulation/what_if.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/simulation_oracle.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

StepCosts times(std::vector<Durations> durations) {
  StepCosts costs;
  costs.durations = std::move(durations);
  return costs;
}

Durations times(double f, double i, double w, std::optional<double> b = {}) {
  return {.forward = f, .input = i, .weight = w, .backward = b};
}

// The change equals a step with those times, written out by hand.
TEST(WhatIf, IsTheStepWithTheOtherTimes) {
  const StepCosts costs = times({times(1, 2, 3), times(2, 1, 1, 4), times(1, 1, 1)});
  const struct {
    Scaling scaling;
    StepCosts same;
  } rows[] = {
      {{.stage = 1, .kind = {}, .factor = 2}, times({times(1, 2, 3), times(4, 2, 2, 8), times(1, 1, 1)})},
      {{.stage = 0, .kind = F, .factor = 0.5}, times({times(0.5, 2, 3), times(2, 1, 1, 4), times(1, 1, 1)})},
      {{.stage = 0, .kind = B, .factor = 2}, times({times(1, 2, 3, 10), times(2, 1, 1, 4), times(1, 1, 1)})},
      {{.stage = {}, .kind = I, .factor = 3}, times({times(1, 6, 3, 5), times(2, 3, 1, 4), times(1, 3, 1, 2)})},
      {{.stage = {}, .kind = W, .factor = 0}, times({times(1, 2, 0, 5), times(2, 1, 0, 4), times(1, 1, 0, 2)})},
  };
  for (const char* name : {"1f1b", "zb-h1"}) {
    const Schedule schedule = make_schedule(name, 3, 5);
    const std::vector<StageEdge> edges = chain_edges(3);
    for (const auto& row : rows) {
      const WhatIf result = what_if(schedule, edges, costs, {row.scaling}).front();
      EXPECT_EQ(result.before, testing::slow_step(schedule, edges, costs).makespan);
      EXPECT_EQ(result.after, simulate_step(schedule, edges, row.same).timeline.makespan) << name;
      EXPECT_NEAR(result.sensitivity, (result.after - result.before) / result.before / (row.scaling.factor - 1), 1e-12);
    }
  }
}

TEST(WhatIf, SensitivitySaysWhatMatters) {
  const Schedule schedule = make_schedule("gpipe", 2, 8);
  const auto sensitivity = [&](const Scaling& scaling) {
    return what_if(schedule, chain_edges(2), times({times(1, 1, 1), times(3, 3, 3)}), {scaling}).front().sensitivity;
  };
  EXPECT_NEAR(sensitivity({.stage = {}, .kind = {}, .factor = 2}), 1, 1e-12);
  EXPECT_EQ(sensitivity({.stage = {}, .kind = {}, .factor = 1}), 0);
  // Stage 1 is the bottleneck: 72 of 75 is its work, and only the first F and the last B of stage 0 delay it.
  EXPECT_NEAR(sensitivity({.stage = 1, .kind = {}, .factor = 1.01}), 72.0 / 75, 1e-9);
  EXPECT_NEAR(sensitivity({.stage = 0, .kind = {}, .factor = 1.01}), 3.0 / 75, 1e-9);
  EXPECT_EQ(sensitivity({.stage = 0, .kind = I, .factor = 1.01}), 0) << "there is none";
}

TEST(WhatIf, GroupsTakeTheScaledTimes) {
  const Schedule schedule = parse_csv("0F0,(0F1;0B0)OVERLAP_F_B,(0F2;0B1)OVERLAP_F_B,0B2\r\n", "grouped");
  StepCosts costs = times({times(1, 1, 1)});
  costs.group_time = hiding_shorter(1);
  const WhatIf result = what_if(schedule, {}, costs, {{.stage = {}, .kind = F, .factor = 3}}).front();
  EXPECT_EQ(result.before, 7) << "1 + 2 + 2 + 2: the backwards hide the forwards";
  EXPECT_EQ(result.after, 11) << "3 + 3 + 3 + 2: the forwards hide the backwards";
}

TEST(WhatIf, Refuses) {
  const Schedule schedule = make_schedule("gpipe", 2, 2);
  const auto ask = [&](const Scaling& scaling) { what_if(schedule, chain_edges(2), {}, {scaling}); };
  EXPECT_THROW(ask({.stage = 2, .kind = {}, .factor = 1}), InputError);
  EXPECT_THROW(ask({.stage = -1, .kind = {}, .factor = 1}), InputError);
  EXPECT_THROW(ask({.stage = {}, .kind = {}, .factor = -1}), InputError);
  EXPECT_THROW(ask({.stage = {}, .kind = F, .factor = 0}), InputError);
}

}  // namespace
}  // namespace plumbline::schedule
