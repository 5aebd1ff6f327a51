#include "runtime/schedule/orders/v/v_greedy.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/simulation/simulate.h"
#include "runtime/schedule/testing/slow_run.h"
#include "runtime/schedule/testing/zero_bubble_table.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::schedule {
namespace {

using testing::times_of_halves;

Schedule zb_v(int ranks, int microbatches, const Durations& durations, double weight_memory = 0.5) {
  return make_schedule({.name = "zb-v-greedy",
                        .ranks = ranks,
                        .microbatches = microbatches,
                        .durations = durations,
                        .weight_memory = weight_memory});
}

// Recorded from the authors' implementation (sail-sg, zero-bubble-pipeline-parallelism at 39f2c186, scheduler/zbv.py
// with f_mem = 1, w_mem = -share): the longest rank and the makespan of its order in a simulator of their model, and
// the most activations of half a rank's share, each until its W.
TEST(ZeroBubbleVGreedy, AsLongAsTheAuthorsOrder) {
  struct Row {
    int ranks, microbatches;
    Durations durations;
    double kept, longest, makespan, peak;
  };
  const Row rows[] = {
      {4, 8, times_of_halves(1, 1, 1, 0), 0.5, 48, 51, 8},
      {8, 16, times_of_halves(1, 1, 1, 0), 0.5, 96, 103, 16},
      {8, 24, times_of_halves(1, 1, 1, 0), 0.5, 144, 151, 16},
      {16, 48, times_of_halves(1, 1, 1, 0), 0.5, 288, 303, 32},
      {5, 13, times_of_halves(1, 2, 1, 0.25), 0.5, 116.5, 116.5, 10},
      {5, 13, times_of_halves(2, 1, 3, 0.5), 0.25, 162, 170, 10},
      {6, 20, times_of_halves(3, 2, 1, 0.5), 1, 269, 269, 12},
      {8, 30, times_of_halves(1, 1, 0.5, 0), 0.5, 156.5, 157, 16},
      {3, 2, times_of_halves(1, 1, 1, 0), 0.5, 15, 16, 4},
      {7, 5, times_of_halves(1, 1.5, 0.5, 0.25), 0, 55, 55, 10},
      {2, 22, times_of_halves(1, 1, 1, 0.125), 0.5, 132.5, 133.625, 4},
      {6, 17, times_of_halves(2, 1, 0, 1), 0.5, 147, 147, 12},
      {8, 12, times_of_halves(1, 2, 4, 0), 0.5, 175, 182, 16},
      // In these rows each switch, and rebuilding the order, makes a difference.
      {8, 4, times_of_halves(7, 5, 7, 0), 0.5, 247, 255, 8},
      {4, 7, times_of_halves(6, 7, 11, 0), 0.5, 341, 357, 8},
      {8, 14, times_of_halves(4, 6, 4, 1), 0.5, 458, 469, 16},
      {8, 15, times_of_halves(4, 6, 7, 2), 0.5, 578, 620, 16},
      {3, 13, times_of_halves(6, 8, 7, 2), 0.5, 569, 582, 6},
      {3, 20, times_of_halves(5, 4, 7, 1), 0.5, 645, 657, 6},
  };
  for (const Row& row : rows) {
    const Schedule schedule = zb_v(row.ranks, row.microbatches, row.durations, row.kept);
    const testing::SlowRun run = testing::slow_run(schedule, row.durations);
    EXPECT_NEAR(run.longest_rank, row.longest, 1e-9) << to_csv(schedule);
    EXPECT_NEAR(run.makespan, row.makespan, 1e-9) << to_csv(schedule);
    EXPECT_EQ(testing::slow_peak(schedule, 1), row.peak) << to_csv(schedule);
  }
}

// From the same source, verbatim.
TEST(ZeroBubbleVGreedy, LiteralOrder) {
  EXPECT_EQ(to_csv(zb_v(3, 4, times_of_halves(2, 1, 1, 0.5))),
            "0F0,0F1,0F2,0F3,5F0,5I0,5W0,5F1,5I1,5W1,5F2,5I2,5W2,0I0,0W0,5F3,5I3,0I1,5W3,0W1,0I2,0W2,0I3,0W3\r\n"
            "1F0,1F1,1F2,4F0,1F3,4F1,4I0,4W0,4F2,4I1,4W1,1I0,1W0,4F3,4I2,1I1,4W2,1W1,4I3,1I2,4W3,1W2,1I3,1W3\r\n"
            "2F0,3F0,2F1,3F1,2F2,3F2,3I0,3W0,2F3,2I0,2W0,3F3,3I1,2I1,3W1,2W1,3I2,2I2,3W2,2W2,3I3,2I3,3W3,2W3\r\n");
}

// Three of the measured models of arXiv 2401.10241, each stage half a rank's share: bubble of the longest rank, from
// the same source.
TEST(ZeroBubbleVGreedy, BubblesOfMeasuredModels) {
  struct Row {
    int ranks, microbatches;
    Durations whole;
    double bubble;
  };
  for (const Row& row : {Row{8, 24, times_of_halves(18.522, 18.086, 9.337, 0.601), 0.0703},
                         Row{8, 24, times_of_halves(29.718, 29.444, 19.927, 0.527), 0.0403},
                         Row{16, 48, times_of_halves(11.347, 11.248, 8.132, 0.377), 0.0498}}) {
    const Durations half =
        times_of_halves(row.whole.forward / 2, row.whole.input / 2, row.whole.weight / 2, row.whole.comm);
    const Timeline timeline = simulate(zb_v(row.ranks, row.microbatches, half), half);
    EXPECT_NEAR(timeline.bubble_longest_rank, row.bubble, 5e-5) << row.ranks << " x " << row.microbatches;
    for (const int peak : timeline.peak_live) EXPECT_LE(peak, 2 * row.ranks);
  }
}

// The paper's claim, and that the order attains the bound of any V: the last rank cannot begin before P-1 forwards.
TEST(ZeroBubbleVGreedy, NobodyWaitsWhereAllTakesTheSame) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (int microbatches = 2 * ranks - 1; microbatches <= 2 * ranks + 12; ++microbatches) {
      const testing::SlowRun run = testing::slow_run(zb_v(ranks, microbatches, Durations{}), Durations{});
      EXPECT_EQ(run.longest_rank, 6 * microbatches) << ranks << " x " << microbatches;
      EXPECT_EQ(run.makespan, 6 * microbatches + ranks - 1) << ranks << " x " << microbatches;
    }
  }
}

TEST(ZeroBubbleVGreedy, RunsToItsEndWithinItsMemory) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    const auto one_of = [&](std::initializer_list<double> values) { return values.begin()[random() % values.size()]; };
    const int ranks = 1 + static_cast<int>(random() % 9), microbatches = 1 + static_cast<int>(random() % 24);
    const Durations durations = times_of_halves(one_of({1, 1, 2, 0.3, 5}), one_of({1, 1, 2, 0.7, 0}),
                                                one_of({1, 1, 0.5, 3.1, 0}), one_of({0, 0, 0.1, 2, 9}));
    const double kept = one_of({0, 0.3, 0.5, 0.7, 1});
    const Schedule schedule = zb_v(ranks, microbatches, durations, kept);
    const testing::SlowRun run = testing::slow_run(schedule, durations);
    ASSERT_EQ(run.fault, "") << "seed " << seed;
    ASSERT_EQ(violations(schedule, chain_edges(2 * ranks)), std::vector<std::string>{}) << "seed " << seed;
    ASSERT_TRUE(run.sums_ascend()) << "seed " << seed;
    ASSERT_LE(testing::slow_peak(schedule, kept), 2 * ranks + 1e-9) << "seed " << seed;
  }
}

TEST(ZeroBubbleVGreedy, PlacementAndRefusals) {
  EXPECT_EQ(make_schedule("zb-v-greedy", 3, 4).rank_of_stage, (std::vector<int>{0, 1, 2, 2, 1, 0}));
  EXPECT_THROW(zb_v(2, 2, times_of_halves(0, 1, 1, 0)), InputError);
  EXPECT_THROW(zb_v(2, 2, times_of_halves(1, 1, 1, 0), -0.5), InputError);
  EXPECT_THROW(make_schedule({.name = "zb-v-greedy", .ranks = 2, .microbatches = 2, .memory_limit = 3}), InputError);
}

}  // namespace
}  // namespace plumbline::schedule
