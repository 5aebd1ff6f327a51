#include "runtime/schedule/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "runtime/error.h"
#include "runtime/schedule/csv.h"
#include "runtime/schedule/generators.h"
#include "runtime/schedule/lower.h"
#include "runtime/schedule/random_schedule.h"

namespace plumbline {
namespace {

using enum ActionType;

TEST(Simulate, ClosedFormsOfGPipeAnd1F1B) {
  for (const std::string& name : schedule_names()) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (int microbatches = 1; microbatches <= 16; ++microbatches) {
        const double tf = 5, tb = 10.5;
        const Timeline timeline = simulate(make_schedule(name, ranks, microbatches), tf, tb);
        const std::string context = name + ", " + std::to_string(ranks) + " x " + std::to_string(microbatches);
        EXPECT_NEAR(timeline.makespan, (microbatches + ranks - 1) * (tf + tb), 1e-9) << context;
        EXPECT_NEAR(timeline.bubble, ideal_bubble(name, ranks, microbatches), 1e-12) << context;
        for (int r = 0; r < ranks; ++r) {
          EXPECT_NEAR(timeline.busy[r], microbatches * (tf + tb), 1e-9) << context;
          EXPECT_NEAR(timeline.end[r], timeline.makespan - r * tb, 1e-9) << context;
          EXPECT_EQ(timeline.peak_live[r], name == "gpipe" ? microbatches : std::min(microbatches, ranks - r))
              << context;
        }
      }
    }
  }
}

// (M+P-1)(tf+tb) + [2(P-1)M/P + 2(P-2)] comm where P divides M: even when transfers cost no rank any time, 1F1B waits
// for 2(P-1) of them in every P micro-batches.
TEST(Simulate, LatencyOf1F1B) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (int rounds = 1; rounds <= 4; ++rounds) {
      const int microbatches = rounds * ranks;
      const double tf = 10, tb = 20, comm = 0.125;
      EXPECT_NEAR(simulate(make_schedule("1f1b", ranks, microbatches), tf, tb, comm).makespan,
                  (microbatches + ranks - 1) * (tf + tb) + (2.0 * (ranks - 1) * rounds + 2.0 * (ranks - 2)) * comm,
                  1e-9)
          << ranks << " ranks, " << microbatches << " micro-batches";
    }
  }
}

// The zero-bubble paper's 1F1B column (arXiv 2401.10241), here with tb = T_B + T_W.
TEST(Simulate, PublishedBubblesOf1F1B) {
  const auto bubble = [](int ranks, int m, double f, double b, double w, double comm) {
    return simulate(make_schedule("1f1b", ranks, m), f, b + w, comm).bubble;
  };
  EXPECT_NEAR(bubble(8, 24, 18.522, 18.086, 9.337, 0.601), 0.2431, 5e-5);
  EXPECT_NEAR(bubble(8, 32, 18.513, 18.086, 9.331, 0.626), 0.1985, 5e-5);
  EXPECT_NEAR(bubble(8, 64, 29.935, 29.621, 19.388, 0.535), 0.1091, 5e-5);
  EXPECT_NEAR(bubble(16, 128, 11.325, 11.308, 8.109, 0.378), 0.1251, 5e-5);
}

// ZB-H1 by its two-line rule: warm up with P - r forwards, then B, a W when more than r are due, F; at last every W.
Schedule zb_h1(int ranks, int microbatches) {
  Schedule schedule{"zb-h1", ranks, microbatches, {}, {}};
  for (int r = 0; r < ranks; ++r) {
    std::vector<Action> actions;
    int f = 0, i = 0, w = 0;
    while (f < std::min(microbatches, ranks - r)) actions.push_back({r, F, f++});
    while (i < microbatches) {
      actions.push_back({r, I, i++});
      if (i - w > r) actions.push_back({r, W, w++});
      if (f < microbatches) actions.push_back({r, F, f++});
    }
    while (w < microbatches) actions.push_back({r, W, w++});
    schedule.rank_of_stage.push_back(r);
    schedule.ranks.push_back(actions);
  }
  return schedule;
}

TEST(Simulate, PublishedMakespansWithSplitBackward) {
  EXPECT_DOUBLE_EQ(simulate(zb_h1(4, 8), 1, 2).makespan, 27);
  EXPECT_DOUBLE_EQ(simulate(zb_h1(8, 16), 1, 2).makespan, 55);
  EXPECT_DOUBLE_EQ(simulate(zb_h1(8, 24), 1, 2).makespan, 79);
  EXPECT_EQ(simulate(zb_h1(4, 8), 1, 2).peak_live, (std::vector<int>{4, 4, 4, 4})) << "held until W";
}

TEST(Simulate, UnitTimesOfPyTorchsOrders) {
  const std::map<std::pair<int, int>, double> makespans = {{{2, 4}, 15}, {{4, 8}, 33}, {{4, 16}, 57}, {{8, 16}, 69}};
  for (const auto& [size, makespan] : makespans) {
    for (const std::string& name : schedule_names()) {
      EXPECT_DOUBLE_EQ(simulate(make_schedule(name, size.first, size.second), 1, 2).makespan, makespan) << name;
    }
  }
}

// Any schedule: relax all starts until nothing moves (a longest path), with lists searched anew each time.
TEST(Simulate, AgreesWithRelaxationOnRandomSchedules) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const Schedule schedule = testing::random_pipe(random).compute;
    const double tf = 1 + random() % 5, tb = random() % 9, comm = random() % 4;
    std::map<std::string, double> ends;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
        double free = 0;
        for (const Action& a : schedule.ranks[rank]) {
          double start = free;
          const auto after = [&](int stage, ActionType type) {
            if (stage < 0 || stage >= schedule.stages) return;
            const auto found = ends.find(to_string({stage, type, a.microbatch}));
            const double delay = schedule.rank_of_stage[stage] == static_cast<int>(rank) ? 0 : comm;
            if (found != ends.end()) start = std::max(start, found->second + delay);
          };
          if (a.type == F) after(a.stage - 1, F);
          if (a.type == B || a.type == I) {
            after(a.stage + 1, B);
            after(a.stage + 1, I);
          }
          free = start + (a.type == F ? tf : a.type == B ? tb : tb / 2);
          double& end = ends.try_emplace(to_string(a), -1).first->second;
          moved = moved || end != free;
          end = free;
        }
      }
    }
    const Timeline timeline = simulate(schedule, tf, tb, comm);
    double makespan = 0, busy = 0;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      const double end = ends.at(to_string(schedule.ranks[rank].back()));
      ASSERT_NEAR(timeline.end[rank], end, 1e-9) << "seed " << seed;
      makespan = std::max(makespan, end);
      busy += timeline.busy[rank];
    }
    ASSERT_NEAR(timeline.makespan, makespan, 1e-9) << "seed " << seed;
    ASSERT_NEAR(timeline.bubble, 1 - busy / (schedule.ranks.size() * makespan), 1e-12) << "seed " << seed;
  }
}

TEST(Simulate, Refuses) {
  const Schedule schedule = make_schedule("gpipe", 2, 2);
  EXPECT_THROW(simulate(schedule, 0, 1), InputError);
  EXPECT_THROW(simulate(schedule, -1, 1), InputError);
  EXPECT_THROW(simulate(schedule, 1, -1), InputError);
  EXPECT_THROW(simulate(schedule, 1, 1, -1), InputError);
  EXPECT_THROW(simulate(schedule, std::numeric_limits<double>::quiet_NaN(), 1), InputError);
  EXPECT_THROW(simulate(schedule, 1, std::numeric_limits<double>::infinity()), InputError);
  EXPECT_THROW(simulate(lower(schedule, chain_edges(2)), 1, 1), InputError);
  EXPECT_THROW(simulate(parse_csv("0F0,0B0,0F1,0B1\r\n1F0,1F1,1B0,1B1\r\n", "s"), 1, 1), InputError) << "deadlock";
  EXPECT_THROW(simulate(parse_csv("0F0,0B0\r\n1F0\r\n", "s"), 1, 1), InputError) << "incomplete";
}

}  // namespace
}  // namespace plumbline
