// Tensors that skip stages in a simulated step, computed by hand; simulation_test.cc has them at random.
#include <gtest/gtest.h>

#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/simulation/lower_bound.h"
#include "runtime/schedule/simulation/what_if.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

using Curve = std::vector<std::pair<double, double>>;

constexpr Records kMemory{.trace = true, .transfers = true, .memory = true, .critical_path = true};

Simulation run(const Schedule& schedule, const StepCosts& costs) {
  return simulate_step(schedule, chain_edges(schedule.stages), costs, kMemory);
}

Curve curve_of(const Simulation& simulation, int rank) {
  Curve curve;
  for (const MemoryPoint& point : simulation.memory[rank]) curve.emplace_back(point.time, point.bytes);
  return curve;
}

// Three ranks, a micro-batch, F = 1 but 5 in the middle, B = 2; 6 bytes take 3 from the first rank to the last.
StepCosts slow_middle() {
  StepCosts costs;
  costs.durations.assign(3, {});
  costs.durations[1].forward = 5;
  costs.links.all.bandwidth = 2;
  costs.skips = {{.edge = {0, 2}, .bytes = 6}};
  return costs;
}

TEST(Skips, AreHeldWhereTheyAreMadeUntilTheyAreCarriedAndThenWhereTheyArePopped) {
  const Schedule schedule = parse_csv("0F0,0B0\r\n1F0,1B0\r\n2F0,2B0\r\n", "three");
  const Simulation simulation = run(schedule, slow_middle());
  EXPECT_EQ(simulation.timeline.begin, (std::vector<double>{0, 1, 6}));
  // 2B0 ends at 9, its gradient for stage 0 arrives at 12, that for stage 1 at once.
  EXPECT_EQ(simulation.timeline.end, (std::vector<double>{14, 11, 9}));
  EXPECT_EQ(curve_of(simulation, 0), (Curve{{0, 1}, {1, 7}, {4, 1}, {14, 0}}));
  EXPECT_EQ(curve_of(simulation, 1), (Curve{{1, 1}, {11, 0}}));
  EXPECT_EQ(curve_of(simulation, 2), (Curve{{4, 6}, {6, 7}, {9, 0}}));
  EXPECT_EQ(simulation.peak_memory, (std::vector<double>{7, 1, 7}));
  EXPECT_EQ(simulation.timeline.peak_live, (std::vector<int>{1, 1, 1})) << "of activations";
  EXPECT_EQ(simulation.transfers.size(), 6u);
}

TEST(Skips, GoInTwoPartsWhereTheBackwardDoes) {
  const Schedule schedule = parse_csv("0F0,0I0,0W0\r\n1F0,1I0,1W0\r\n2F0,2I0,2W0\r\n", "halves");
  StepCosts costs = slow_middle();
  costs.skips[0].weight_part = 2;
  EXPECT_EQ(curve_of(run(schedule, costs), 2), (Curve{{4, 6}, {6, 7}, {8, 3}, {9, 0}}));
  costs.skips[0].weight_part.reset();
  EXPECT_EQ(curve_of(run(schedule, costs), 2), (Curve{{4, 6}, {6, 7}, {9, 0}}));
}

TEST(Skips, WithoutABackwardGoWithTheForwardThatPopsThem) {
  const Schedule schedule = parse_csv("0F0\r\n1F0\r\n2F0\r\n", "forwards");
  EXPECT_EQ(curve_of(run(schedule, slow_middle()), 2), (Curve{{4, 6}, {6, 7}, {7, 1}}));
}

// Stages 0 and 3 on one rank, as in a V: nothing travels.
TEST(Skips, WithinARankAreHeldFromTheirMaking) {
  const Schedule schedule = parse_csv("0F0,3F0,3B0,0B0\r\n1F0,2F0,2B0,1B0\r\n", "v");
  StepCosts costs;
  costs.links.all.bandwidth = 1;
  costs.skips = {{.edge = {0, 3}, .bytes = 4}};
  const Simulation simulation = run(schedule, costs);
  EXPECT_EQ(curve_of(simulation, 0), (Curve{{0, 1}, {1, 5}, {3, 6}, {6, 1}, {12, 0}}));
  EXPECT_EQ(simulation.transfers.size(), 4u);
  EXPECT_EQ(simulation.timeline.makespan, 12) << "as without";
}

// With a group, tensors that begin in it are held beside those that end in it, whichever member comes first.
TEST(Skips, InAGroup) {
  for (const char* text : {"(0F1;0B0)OVERLAP_F_B", "(0B0;0F1)OVERLAP_F_B"}) {
    const Schedule schedule = parse_csv("0F0," + std::string(text) + ",0B1\r\n1F0,1B0,1F1,1B1\r\n", "group");
    StepCosts costs;
    costs.memory[0].activation = 10;
    costs.skips = {{.edge = {0, 1}, .bytes = 1}};
    const Simulation simulation = run(schedule, costs);
    EXPECT_EQ(curve_of(simulation, 0), (Curve{{0, 10}, {4, 20}, {7, 10}, {12, 0}})) << text;
    EXPECT_EQ(curve_of(simulation, 1), (Curve{{1, 11}, {4, 0}, {7, 11}, {10, 0}})) << text;
  }
}

// One message for an edge and micro-batch carries everything that uses the edge.
TEST(Skips, OnAnEdgeThatTheStepHasAnywayMakeItsMessagesLonger) {
  const Schedule schedule = make_schedule("1f1b", 4, 8);
  StepCosts alone;
  alone.links = {.all = {.latency = 0.5, .bandwidth = 4}, .bytes = {2, 5, 3, 1}, .occupied = true};
  StepCosts skipping = alone;
  alone.links.bytes[1] = 12;
  skipping.skips = {{.edge = {1, 2}, .bytes = 3}, {.edge = {1, 2}, .bytes = 4}};
  const Simulation expected = run(schedule, alone), found = run(schedule, skipping);
  EXPECT_EQ(found.timeline.end, expected.timeline.end);
  EXPECT_EQ(found.transfers.size(), expected.transfers.size());
  EXPECT_EQ(found.peak_memory[0], expected.peak_memory[0]);
  EXPECT_GT(found.peak_memory[2], expected.peak_memory[2]) << "what skips is held beside the activations";
  const std::vector<StageEdge> chain = chain_edges(4);
  EXPECT_EQ(lower_bound(schedule, chain, skipping).makespan, lower_bound(schedule, chain, alone).makespan);
  EXPECT_EQ(what_if(schedule, chain, skipping, {{.factor = 2}})[0].after,
            what_if(schedule, chain, alone, {{.factor = 2}})[0].after);
}

// Skips of zero bytes are edges that cost latency only.
TEST(Skips, OfNoBytesAreEdges) {
  for (const char* name : {"1f1b", "zb-v", "interleaved-1f1b", "dualpipe"}) {
    const Schedule schedule = make_schedule(name, 4, 8);
    const StageEdge far{0, schedule.stages - 1};
    StepCosts costs;
    costs.durations[0].comm = 7;
    costs.memory[0].activation = 0.1;
    costs.skips = {{.edge = far}};
    const Simulation found = run(schedule, costs);
    costs.skips.clear();
    std::vector<StageEdge> edges = chain_edges(schedule.stages);
    edges.push_back(far);
    const Simulation expected = simulate_step(schedule, edges, costs, kMemory);
    EXPECT_EQ(found.timeline.end, expected.timeline.end) << name;
    EXPECT_EQ(found.peak_memory, expected.peak_memory) << name;
    EXPECT_EQ(found.transfers.size(), expected.transfers.size()) << name;
    EXPECT_EQ(found.critical_path.size(), expected.critical_path.size()) << name;
  }
}

// All memory is freed in the end, whatever rounding leaves of a tenth.
TEST(Skips, LeaveNothingBehind) {
  for (const ScheduleKind& kind : schedule_kinds()) {
    const Schedule schedule = make_schedule(std::string(kind.name), 4, 16);
    StepCosts costs;
    costs.memory[0].activation = 0.1;
    costs.links.all.bandwidth = 0.7;
    for (int from = 0; from + 1 < schedule.stages; ++from) {
      costs.skips.push_back({.edge = {from, schedule.stages - 1}, .bytes = 0.3, .weight_part = 0.1});
    }
    const Simulation simulation = run(schedule, costs);
    for (const auto& curve : simulation.memory) {
      if (has_backward(schedule)) {
        EXPECT_EQ(curve.back().bytes, 0) << kind.name;
      }
      for (const MemoryPoint& point : curve) EXPECT_GE(point.bytes, 0) << kind.name;
    }
  }
}

TEST(Skips, AreRefused) {
  const Schedule schedule = make_schedule("1f1b", 4, 8);
  const auto refused = [&](const Skip& skip) {
    StepCosts costs;
    costs.skips = {skip};
    return testing::refusal([&] { simulate_step(schedule, chain_edges(4), costs); }) + " | " +
           testing::refusal([&] { lower_bound(schedule, chain_edges(4), costs); });
  };
  testing::expect_part(
      refused({.edge = {2, 1}}),
      "edge from stage 2 to stage 1: values flow from a stage to a later one, out of stages 0 to 3 | edge from");
  testing::expect_part(refused({.edge = {0, 4}}), "edge from stage 0 to stage 4");
  testing::expect_part(refused({.edge = {0, 3}, .bytes = -1}), "simulate: a skip of -1 bytes;");
  testing::expect_part(refused({.edge = {0, 3}, .bytes = 1, .weight_part = 2}), "needs more than the skip is");
}

}  // namespace
}  // namespace plumbline::schedule
