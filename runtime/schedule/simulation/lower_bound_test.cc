#include "runtime/schedule/simulation/lower_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/simulation/simulation.h"
#include "runtime/schedule/testing/random_step.h"
#include "runtime/schedule/testing/simulation_oracle.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::schedule {
namespace {

StepCosts costs_of(double f, double i, double w, double comm = 0) {
  StepCosts costs;
  costs.durations = {{.forward = f, .input = i, .weight = w, .backward = {}, .comm = comm}};
  return costs;
}

LowerBound bound_of(const Schedule& schedule, const StepCosts& costs) {
  return lower_bound(schedule, chain_edges(schedule.stages), costs);
}

double makespan_of(const Schedule& schedule, const StepCosts& costs) {
  return simulate_step(schedule, chain_edges(schedule.stages), costs).timeline.makespan;
}

TEST(LowerBound, NothingIsFaster) {
  int attained = 0, by_link = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const testing::RandomStep step = testing::random_step(random);
    const testing::SlowStep slow = testing::slow_step(step.compute, step.edges, step.costs);
    if (slow.deadlock) continue;
    const LowerBound bound = lower_bound(step.compute, step.edges, step.costs);
    ASSERT_LE(bound.makespan, slow.makespan + 1e-9) << "seed " << seed << ": " << bound.reason;
    ASSERT_EQ(bound.makespan, std::max({bound.busiest_rank, bound.chain, bound.busiest_link})) << "seed " << seed;
    attained += bound.makespan > slow.makespan - 1e-9 ? 1 : 0;
    by_link += bound.reason.starts_with("the link") ? 1 : 0;
  }
  EXPECT_GT(attained, 100);
  EXPECT_GT(by_link, 20);
}

// (M+P-1)(F+B) + 2(P-1)c for whole backwards, (P-1)(F+c) + M(F+I+W) for halves if W is long enough to fill the way
// back. 1f1b attains the first without latency, zb-h2 and zb-v the second from M = 2P-1 on.
TEST(LowerBound, ClosedFormsAndWhoAttainsThem) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 14; ++m) {
      const double f = 3, i = 2, w = 2.5;
      const auto context = std::to_string(p) + " x " + std::to_string(m);
      const Schedule whole = make_schedule("1f1b", p, m);
      EXPECT_NEAR(bound_of(whole, costs_of(f, i, w, 0.5)).makespan, (m + p - 1) * (f + i + w) + 2 * (p - 1) * 0.5, 1e-9)
          << context;
      EXPECT_NEAR(bound_of(whole, costs_of(f, i, w)).makespan, makespan_of(whole, costs_of(f, i, w)), 1e-9) << context;
      if (m < 2 * p - 1) continue;
      // Two stages of half the size down the ranks and up again: half the way to the last rank's first action.
      const Schedule v = make_schedule("zb-v", p, m);
      EXPECT_NEAR(bound_of(v, costs_of(1, 1, 1)).makespan, p - 1 + 6 * m, 1e-9) << context;
      EXPECT_NEAR(makespan_of(v, costs_of(1, 1, 1)), p - 1 + 6 * m, 1e-9) << context;
      const Schedule halves = make_schedule("zb-h2", p, m);
      EXPECT_NEAR(bound_of(halves, costs_of(f, i, w, 0.5)).busiest_rank, (p - 1) * (f + 0.5) + m * (f + i + w), 1e-9)
          << context;
      EXPECT_NEAR(bound_of(halves, costs_of(1, 1, 1)).makespan, p - 1 + 3 * m, 1e-9) << context;
      EXPECT_NEAR(makespan_of(halves, costs_of(1, 1, 1)), p - 1 + 3 * m, 1e-9) << context;
    }
  }
}

// All orders of two ranks with two micro-batches (each kind by ascending micro-batch): the best never beats the bound,
// and attains it for F = I = W without latency.
TEST(LowerBound, TheBestOfAllOrders) {
  const auto less = [](const Action& a, const Action& b) {
    return std::tuple(a.type, a.microbatch) < std::tuple(b.type, b.microbatch);
  };
  const auto orders = [&](std::vector<Action> actions) {
    std::vector<std::vector<Action>> all;
    std::sort(actions.begin(), actions.end(), less);
    do {
      bool ascending = true;
      for (std::size_t i = 0; i < actions.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          ascending =
              ascending && (actions[i].type != actions[j].type || actions[j].microbatch < actions[i].microbatch);
        }
      }
      if (ascending) all.push_back(actions);
    } while (std::next_permutation(actions.begin(), actions.end(), less));
    return all;
  };
  for (const char* name : {"1f1b", "zb-h1"}) {
    const Schedule made = make_schedule(name, 2, 2);
    for (const StepCosts& costs : {costs_of(1, 1, 1), costs_of(2, 1, 0.5), costs_of(1, 2, 3), costs_of(1, 1, 1, 0.5)}) {
      Schedule tried = made;
      double best = 1e9;
      for (const auto& first : orders(made.ranks[0])) {
        for (const auto& second : orders(made.ranks[1])) {
          tried.ranks = {first, second};
          if (!violations(tried, chain_edges(2)).empty()) continue;
          best = std::min(best, makespan_of(tried, costs));
        }
      }
      const Durations& d = costs.durations[0];
      EXPECT_LE(bound_of(made, costs).makespan, best + 1e-12) << name;
      if (d.forward == d.weight && d.comm == 0) {
        EXPECT_NEAR(bound_of(made, costs).makespan, best, 1e-12) << name;
      }
    }
  }
}

TEST(LowerBound, SaysWhatItIs) {
  EXPECT_EQ(bound_of(make_schedule("1f1b", 4, 8), costs_of(1, 1, 1)).reason,
            "rank 3: at least 3 before its first action, 24 of work, 6 after it");
  EXPECT_EQ(bound_of(make_schedule("1f1b", 4, 1), costs_of(1, 1, 1)).reason,
            "one micro-batch through all stages and back takes 12");
  StepCosts slow_links = costs_of(1, 1, 1);
  slow_links.links = {.all = {.latency = 0, .bandwidth = 0.25}, .of_ranks = {}, .bytes = {1}, .occupied = true};
  const LowerBound bound = bound_of(make_schedule("1f1b", 2, 8), slow_links);
  EXPECT_EQ(bound.reason, "the link from rank 1 to rank 0 is busy for 32");
  EXPECT_EQ(bound.makespan, 8 + 32 + 2) << "after F, a message, F and B, and before the last B";
  EXPECT_EQ(bound_of(make_schedule("zb-h2", 4, 8), costs_of(1, 1, 1)).reason,
            "rank 3: at least 3 before its first action, 24 of work");
  EXPECT_THROW(bound_of(parse_csv("0F0,0B0\r\n1F0\r\n", "s"), costs_of(1, 1, 1)), InputError);
}

}  // namespace
}  // namespace plumbline::schedule
