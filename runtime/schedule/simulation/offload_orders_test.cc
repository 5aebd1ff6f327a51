// Published orders with OFFLOAD and RELOAD: imported, checked, simulated.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "runtime/schedule/check/check.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/simulation/simulation.h"
#include "runtime/schedule/testing/published_orders_path.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::schedule {
namespace {

std::string read_published(const std::string& name) {
  std::ifstream file(std::string(PLUMBLINE_PUBLISHED_ORDERS) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(PublishedOrders, PipeOffloadHalf) {
  const std::string text = read_published("pipeoffload_half.csv");
  const Schedule order = parse_csv(text, "pipeoffload_half.csv");
  EXPECT_EQ(to_csv(order), text);
  EXPECT_EQ(violations(order, chain_edges(8)), std::vector<std::string>{});
  // Without its transfers it is the plain interleaved order.
  Schedule plain = order;
  for (std::vector<Action>& actions : plain.ranks)
    std::erase_if(actions, [](const Action& action) { return is_offload(action.type); });
  EXPECT_EQ(plain.ranks, make_schedule("interleaved-1f1b", 4, 8).ranks);

  StepCosts costs;
  costs.durations = {{.forward = 1, .input = 1, .weight = 1}};
  const auto simulated = [&](const Schedule& schedule, double transfer) {
    costs.durations[0].offload = costs.durations[0].reload = transfer;
    return simulate_step(schedule, chain_edges(8), costs);
  };
  const Simulation without = simulated(plain, 0), with = simulated(order, 0.75);
  EXPECT_EQ(without.timeline.makespan, 57) << "(M V + P - 1) (F + B)";
  EXPECT_EQ(with.timeline.makespan, 57)
      << "the paper's claim: transfers are hidden as long as they take less than F + B";
  // The paper's figure of memory: offloading the stages with the longest lives saves more than half of their share.
  EXPECT_EQ(without.timeline.peak_live, (std::vector<int>{11, 9, 7, 5}));
  for (std::size_t rank = 0; rank < 4; ++rank)
    EXPECT_LT(with.timeline.peak_live[rank], without.timeline.peak_live[rank]) << rank;
  EXPECT_LE(with.timeline.peak_live[0], 7) << "eleven activations without";
  EXPECT_GT(simulated(order, 3).timeline.makespan, 57) << "slow transfers are not hidden";
}

// Offloading at once, with transfers that take no time, leaves one activation a rank; the wait for a reload is the only
// cost of a slow one.
TEST(PublishedOrders, EveryKindStaysValidWithOffloads) {
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (kind.name == "forward-only") continue;
    Schedule schedule = make_schedule(std::string(kind.name), 4, 8);
    const double makespan = simulate_step(schedule, chain_edges(schedule.stages), {}).timeline.makespan;
    for (std::vector<Action>& actions : schedule.ranks) {
      std::vector<Action> out;
      for_each_entry(actions, [&](std::span<const Action> entry) {
        for (const Action& action : entry)
          if (action.type == ActionType::B || action.type == ActionType::I)
            out.push_back({action.stage, ActionType::RELOAD, action.microbatch});
        out.insert(out.end(), entry.begin(), entry.end());
        for (const Action& action : entry)
          if (action.type == ActionType::F) out.push_back({action.stage, ActionType::OFFLOAD, action.microbatch});
      });
      actions = std::move(out);
    }
    EXPECT_EQ(violations(schedule, chain_edges(schedule.stages)), std::vector<std::string>{}) << kind.name;
    const Timeline free = simulate_step(schedule, chain_edges(schedule.stages), {}).timeline;
    EXPECT_EQ(free.makespan, makespan) << kind.name;
    StepCosts slow;
    slow.durations[0].reload = 1;
    EXPECT_GT(simulate_step(schedule, chain_edges(schedule.stages), slow).timeline.makespan, makespan) << kind.name;
  }
}

// The rule for the time of a group, and its ends: the sum, and the longer side alone.
TEST(Groups, HideTheShorterSide) {
  const Schedule schedule = parse_csv("0F0,(0F1;0B0)OVERLAP_F_B,(0F2;0B1)OVERLAP_F_B,0B2\r\n", "grouped");
  StepCosts costs;
  costs.durations = {{.forward = 1, .input = 1, .weight = 1}};
  const auto makespan = [&](double share) {
    costs.group_time = hiding_shorter(share);
    return simulate_step(schedule, {}, costs).timeline.makespan;
  };
  EXPECT_EQ(makespan(0), 9) << "1 + 3 + 3 + 2";
  EXPECT_EQ(makespan(1), 7) << "1 + 2 + 2 + 2: the backwards hide the forwards";
  EXPECT_EQ(makespan(0.5), 8);
}

}  // namespace
}  // namespace plumbline::schedule
