#include "runtime/schedule/orders/timed/zero_bubble_auto.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/simulation/simulate.h"
#include "runtime/schedule/testing/slow_run.h"
#include "runtime/schedule/testing/zero_bubble_table.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

using testing::times_of_halves;

ScheduleRequest request(int ranks, int microbatches, const Durations& durations, double memory_limit,
                        double weight_memory = 0.5) {
  return {.name = "zb-auto",
          .ranks = ranks,
          .microbatches = microbatches,
          .durations = durations,
          .memory_limit = memory_limit,
          .weight_memory = weight_memory};
}

// The columns of the paper's table that its scheduler makes.
TEST(ZeroBubbleAuto, PublishedBubbles) {
  for (const testing::ZeroBubbleRow& row : testing::kZeroBubbleTable) {
    const auto bubble = [&](double limit) {
      const Schedule schedule = make_schedule(request(row.ranks, row.microbatches, row.durations, limit));
      return simulate(schedule, row.durations).bubble_longest_rank;
    };
    EXPECT_NEAR(bubble(0), row.zb_1p, 5e-5) << row.where();
    EXPECT_NEAR(bubble(2 * row.ranks), row.zb_2p, 5e-5) << row.where();
  }
}

// The second row of the table with 2P of memory: the share that W keeps matters from about one half on.
TEST(ZeroBubbleAuto, ShareKeptForWeights) {
  const Durations& durations = testing::kZeroBubbleTable[1].durations;
  const auto bubble = [&](double kept) {
    return simulate(make_schedule(request(8, 32, durations, 16, kept)), durations).bubble_longest_rank;
  };
  for (const double kept : {0.2, 0.35, 0.5}) EXPECT_NEAR(bubble(kept), 0.0039, 5e-5) << kept;
  EXPECT_NEAR(bubble(0.65), 0.0331, 5e-5);
  EXPECT_NEAR(bubble(0.8), 0.0619, 5e-5);
}

// Longest rank of the authors' order, recorded from their implementation (sail-sg, zero-bubble-pipeline-parallelism at
// 39f2c186, scheduler/zb.py, initial_solution with mem_f = 1, mem_w = -share, max_mem = limit); none of our other
// orders is better on these.
TEST(ZeroBubbleAuto, AsLongAsTheAuthorsOrder) {
  struct Row {
    int ranks, microbatches;
    Durations durations;
    double limit, kept, longest;
  };
  const Row rows[] = {
      {4, 8, times_of_halves(1, 1, 1, 0), 4, 0.5, 27},
      {4, 8, times_of_halves(1, 1, 1, 0), 8, 0.5, 24},
      {4, 9, times_of_halves(2, 1, 1, 0.5), 4, 0.5, 48},
      {5, 13, times_of_halves(1, 2, 1, 0.25), 5, 0.5, 64},
      {5, 13, times_of_halves(1, 2, 1, 0.25), 7, 0.25, 60},
      {6, 20, times_of_halves(3, 2, 1, 0.5), 6, 1, 150},
      {6, 20, times_of_halves(3, 2, 1, 0.5), 9, 1, 142},
      {8, 30, times_of_halves(1, 1, 0.5, 0), 8, 0.5, 85.5},
      {8, 30, times_of_halves(1, 1, 2, 0.25), 16, 0.5, 122.5},
      {3, 2, times_of_halves(1, 1, 1, 0), 3, 0.5, 9},
      {8, 24, times_of_halves(2, 1, 3, 0), 2, 0.5, 510},
      {8, 24, times_of_halves(2, 1, 3, 0), 1, 0.5, 648},
      {1, 5, times_of_halves(1, 2, 3, 4), 1, 0.5, 30},
      // In these rows each switch matters, as does the rule that a W may fill a gap completely.
      {6, 7, times_of_halves(8, 5, 9, 0), 7, 0.5, 171},
      {6, 16, times_of_halves(3, 6, 3, 1), 12, 0.5, 214},
      {4, 9, times_of_halves(7, 6, 4, 2), 8, 0.5, 172},
      {3, 15, times_of_halves(8, 7, 5, 2), 6, 0.5, 303},
      {3, 16, times_of_halves(5, 5, 3, 2), 6, 0.5, 212},
      {4, 11, times_of_halves(4, 6, 3, 0), 8, 0.5, 145},
      {4, 10, times_of_halves(7, 7, 4, 0), 5, 0.5, 195},
  };
  for (const Row& row : rows) {
    const Schedule schedule = make_schedule(request(row.ranks, row.microbatches, row.durations, row.limit, row.kept));
    EXPECT_NEAR(testing::slow_run(schedule, row.durations).longest_rank, row.longest, 1e-9) << to_csv(schedule);
  }
}

// From the same source, verbatim.
TEST(ZeroBubbleAuto, LiteralOrder) {
  EXPECT_EQ(to_csv(make_schedule(request(3, 4, times_of_halves(2, 1, 1, 0.5), 5))),
            "0F0,0F1,0F2,0F3,0I0,0W0,0I1,0W1,0I2,0W2,0I3,0W3\r\n"
            "1F0,1F1,1F2,1I0,1F3,1I1,1W0,1W1,1I2,1W2,1I3,1W3\r\n"
            "2F0,2I0,2F1,2I1,2F2,2I2,2F3,2I3,2W0,2W1,2W2,2W3\r\n");
  EXPECT_EQ(to_csv(make_schedule(request(2, 4, times_of_halves(1, 2, 3, 0), 4))),
            "0F0,0F1,0F2,0F3,0I0,0W0,0I1,0W1,0I2,0W2,0I3,0W3\r\n1F0,1I0,1F1,1I1,1F2,1I2,1F3,1I3,1W0,1W1,1W2,1W3\r\n");
}

TEST(ZeroBubbleAuto, RunsToItsEndWithinItsMemoryNoWorseThanByHand) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    const auto one_of = [&](std::initializer_list<double> values) { return values.begin()[random() % values.size()]; };
    const int ranks = 1 + static_cast<int>(random() % 9), microbatches = 1 + static_cast<int>(random() % 24);
    const Durations durations = times_of_halves(one_of({1, 1, 2, 0.3, 5}), one_of({1, 1, 2, 0.7, 0}),
                                                one_of({1, 1, 0.5, 3.1, 0}), one_of({0, 0, 0.1, 2}));
    const double limit = one_of({1, 1.4, 2, 1.0 * ranks, 1.5 * ranks, 2.0 * ranks});
    const double kept = one_of({0, 0.3, 0.5, 0.7, 1});
    const Schedule schedule = make_schedule(request(ranks, microbatches, durations, limit, kept));
    const testing::SlowRun run = testing::slow_run(schedule, durations);
    ASSERT_EQ(run.fault, "") << "seed " << seed;
    ASSERT_EQ(violations(schedule, chain_edges(ranks)), std::vector<std::string>{}) << "seed " << seed;
    ASSERT_TRUE(run.sums_ascend()) << "seed " << seed;
    ASSERT_LE(testing::slow_peak(schedule, kept), limit + 1e-9) << "seed " << seed;
    // Their peak, if each activation is held as a whole until its W.
    for (const auto& [by_hand, needs] : {std::pair{"zb-h1", ranks}, {"zb-h2", 2 * ranks - 1}}) {
      if (needs > limit) continue;
      ASSERT_LE(run.longest_rank,
                testing::slow_run(make_schedule(by_hand, ranks, microbatches), durations).longest_rank + 1e-9)
          << by_hand << ", seed " << seed;
    }
  }
}

TEST(ZeroBubbleAuto, NobodyWaitsWithTwiceTheMemoryWhereAllTakesTheSame) {
  for (int ranks = 1; ranks <= 10; ++ranks) {
    const int microbatches = 3 * ranks;
    const Schedule schedule = make_schedule(request(ranks, microbatches, times_of_halves(1, 1, 1, 0), 2 * ranks));
    EXPECT_NEAR(testing::slow_run(schedule, Durations{}).longest_rank, 3 * microbatches, 1e-9) << ranks;
  }
}

TEST(ZeroBubbleAuto, Refuses) {
  const auto message = [](const ScheduleRequest& wanted) { return testing::refusal([&] { make_schedule(wanted); }); };
  EXPECT_EQ(message(request(2, 2, times_of_halves(0, 1, 1, 0), 0)),
            "schedule zb-auto: a forward takes 0; a finite time above 0 is needed");
  EXPECT_EQ(message(request(2, 2, times_of_halves(1, -1, 1, 0), 0)),
            "schedule zb-auto: an input backward takes -1; a finite time not below 0 is needed");
  EXPECT_EQ(message(request(2, 2, times_of_halves(1, 1, 1.0 / 0.0, 0), 0)),
            "schedule zb-auto: a weight backward takes inf; a finite time not below 0 is needed");
  EXPECT_EQ(message(request(2, 2, times_of_halves(1, 1, 1, 0.0 / 0.0), 0)).substr(0, 34),
            "schedule zb-auto: a transfer takes");
  EXPECT_EQ(message(request(2, 2, times_of_halves(1, 1, 1, 0), 0.5)),
            "schedule zb-auto: a memory limit of 0.5 micro-batches; at least 1 is needed");
  EXPECT_EQ(message(request(2, 2, times_of_halves(1, 1, 1, 0), 0, 1.5)),
            "schedule zb-auto: a share of 1.5 of the activations kept for W; one from 0 to 1 is needed");
  EXPECT_EQ(message({.name = "zb-auto", .ranks = 2, .microbatches = 2, .stages_per_rank = 2}),
            "schedule zb-auto: 2 stages per rank; it has 1");
}

}  // namespace
}  // namespace plumbline::schedule
