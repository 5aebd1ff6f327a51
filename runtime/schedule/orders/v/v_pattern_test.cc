#include "runtime/schedule/orders/v/v_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/simulation/simulate.h"
#include "runtime/schedule/testing/slow_run.h"
#include "runtime/schedule/testing/zero_bubble_table.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::schedule {
namespace {

using testing::times_of_halves;

// In units of half a rank's share; the paper gives (P+2)/2 and (P+4)/3 of a whole one, rounded down.
int published_peak(const std::string& name, int ranks) {
  return 2 * (name == "v-half" ? (ranks + 2) / 2 : (ranks + 4) / 3);
}

// Recorded from the authors' implementation (sail-sg, zero-bubble-pipeline-parallelism at 39f2c186,
// scheduler/zbv_greedy.py): its order in a simulator of their model, with unit times and with F 2, I 3, W 1 and 0.5 for
// a transfer.
TEST(VPattern, AsLongAsTheAuthorsOrder) {
  struct Row {
    const char* name;
    int ranks, microbatches;
    double unit, other;
    int peak;
  };
  const Row rows[] = {
      {"v-half", 1, 3, 18, 36, 2},     {"v-min", 1, 3, 18, 36, 2},     {"v-half", 2, 5, 31, 72, 4},
      {"v-min", 2, 5, 33, 87, 4},      {"v-half", 3, 7, 47, 117, 4},   {"v-min", 3, 7, 47, 148, 4},
      {"v-half", 5, 12, 83, 212, 6},   {"v-min", 5, 12, 87, 276, 6},   {"v-half", 6, 18, 119, 301, 8},
      {"v-min", 6, 18, 125, 412, 6},   {"v-half", 7, 15, 107, 278, 8}, {"v-min", 7, 15, 113, 370, 6},
      {"v-half", 9, 20, 143, 372, 10}, {"v-min", 9, 20, 149, 492, 8},  {"v-half", 12, 26, 185, 486, 14},
      {"v-min", 12, 26, 197, 654, 10}, {"v-half", 8, 24, 161, 0, 10},  {"v-min", 8, 24, 171, 0, 8},
  };
  for (const Row& row : rows) {
    const Schedule schedule = make_schedule(row.name, row.ranks, row.microbatches);
    EXPECT_EQ(testing::slow_run(schedule, Durations{}).longest_rank, row.unit) << to_csv(schedule);
    if (row.other != 0) {
      EXPECT_EQ(testing::slow_run(schedule, times_of_halves(2, 3, 1, 0.5)).longest_rank, row.other) << to_csv(schedule);
    }
    EXPECT_EQ(testing::slow_peak(schedule, 1), row.peak) << to_csv(schedule);
  }
}

// Ours squeezes the end there too; theirs takes 48, 51 and 124 with as many activations.
TEST(VPattern, ShorterThanTheAuthorsOrderForFewMicrobatches) {
  EXPECT_EQ(testing::slow_run(make_schedule("v-half", 8, 4)).makespan, 44);
  EXPECT_EQ(testing::slow_run(make_schedule("v-min", 8, 4)).makespan, 44);
  EXPECT_EQ(testing::slow_run(make_schedule("v-half", 16, 12)).makespan, 113);
}

// From the same source, verbatim.
TEST(VPattern, LiteralOrders) {
  EXPECT_EQ(to_csv(make_schedule("v-min", 3, 4)),
            "0F0,0F1,0F2,5F0,5I0,5W0,5F1,0I0,5I1,5W1,0W0,5F2,0F3,0I1,5I2,5W2,0W1,5F3,5I3,0I2,5W3,0W2,0I3,0W3\r\n"
            "1F0,1F1,4F0,4F1,4I0,4W0,1I0,1F2,1W0,4I1,4F2,4W1,1I1,1F3,1W1,4I2,4F3,4W2,1I2,4I3,4W3,1W2,1I3,1W3\r\n"
            "2F0,3F0,2F1,3F1,3I0,2I0,3W0,2W0,2F2,3F2,3I1,2I1,3W1,2W1,2F3,3F3,3I2,2I2,3W2,2W2,3I3,2I3,3W3,2W3\r\n");
}

TEST(VPattern, BubblesAndActivations) {
  struct Row {
    int ranks, microbatches;
    Durations durations;
    double v_min, v_half;
  };
  const Durations small =
      times_of_halves(18.522 / 2, 18.086 / 2, 9.337 / 2, 0.601);  // measured models of arXiv 2401.10241
  const Durations large = times_of_halves(29.718 / 2, 29.444 / 2, 19.927 / 2, 0.527);
  for (const Row& row : {Row{4, 8, Durations{}, 0.1864, 0.0943}, Row{8, 16, Durations{}, 0.2195, 0.1504},
                         Row{8, 24, Durations{}, 0.1579, 0.1056}, Row{16, 48, Durations{}, 0.1700, 0.1246},
                         Row{8, 24, small, 0.3353, 0.1702}, Row{8, 24, large, 0.2721, 0.1447}}) {
    for (const auto& [name, bubble] : {std::pair{"v-min", row.v_min}, {"v-half", row.v_half}}) {
      const Timeline timeline = simulate(make_schedule(name, row.ranks, row.microbatches), row.durations);
      EXPECT_NEAR(timeline.bubble_longest_rank, bubble, 5e-5) << name << ", " << row.ranks << " x " << row.microbatches;
      EXPECT_EQ(*std::max_element(timeline.peak_live.begin(), timeline.peak_live.end()),
                published_peak(name, row.ranks));
    }
  }
  // As its authors warn: if W takes about half of F, v-min waits longer than 1f1b.
  const Durations whole = times_of_halves(18.522, 18.086, 9.337, 0.601);
  EXPECT_GT(simulate(make_schedule("v-min", 8, 24), small).bubble_longest_rank,
            simulate(make_schedule("1f1b", 8, 24), whole).bubble_longest_rank + 0.09);
}

TEST(VPattern, RunsToItsEndWithinItsMemory) {
  for (const std::string name : {"v-half", "v-min"}) {
    for (int ranks = 1; ranks <= 13; ++ranks) {
      for (int microbatches = 1; microbatches <= 30; ++microbatches) {
        const std::string where = name + ", " + std::to_string(ranks) + " x " + std::to_string(microbatches);
        const Schedule schedule = make_schedule(name, ranks, microbatches);
        const testing::SlowRun run = testing::slow_run(schedule, Durations{});
        ASSERT_EQ(run.fault, "") << where;
        ASSERT_EQ(violations(schedule, chain_edges(2 * ranks)), std::vector<std::string>{}) << where;
        ASSERT_TRUE(run.sums_ascend()) << where;
        ASSERT_LE(testing::slow_peak(schedule, 1), published_peak(name, ranks)) << where;
      }
    }
  }
}

TEST(VPattern, TakesNoDurations) {
  EXPECT_THROW(make_schedule({.name = "v-min", .ranks = 2, .microbatches = 2, .durations = Durations{}}), InputError);
}

}  // namespace
}  // namespace plumbline::schedule
