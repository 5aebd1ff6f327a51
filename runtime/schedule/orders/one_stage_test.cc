#include "runtime/schedule/orders/one_stage.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/schedule/testing/slow_run.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

using testing::slow_run;
using testing::SlowRun;
using testing::unit_share;

Schedule sliced(int ranks, int microbatches, int slices) {
  return make_schedule({.name = "seq1f1b", .ranks = ranks, .microbatches = microbatches, .slices = slices});
}

TEST(OneStageOrders, Literal) {
  EXPECT_EQ(to_csv(make_schedule("eager-1f1b", 3, 4)),
            "0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\r\n"
            "1F0,1F1,1F2,1B0,1F3,1B1,1B2,1B3\r\n"
            "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3\r\n");
  EXPECT_EQ(to_csv(make_schedule("forward-only", 2, 3)), "0F0,0F1,0F2\r\n1F0,1F1,1F2\r\n");
  EXPECT_EQ(to_csv(make_schedule("seq1f1b", 2, 4)),
            "0F0,0F1,0F2,0B1,0F3,0B0,0B3,0B2\r\n"
            "1F0,1F1,1B1,1F2,1B0,1F3,1B3,1B2\r\n");
  EXPECT_EQ(to_csv(sliced(2, 3, 3)), "0F0,0F1,0F2,0B2,0B1,0B0\r\n1F0,1F1,1F2,1B2,1B1,1B0\r\n");
}

TEST(OneStageOrders, OneSliceIs1F1B) {
  for (int ranks = 1; ranks <= 6; ++ranks) {
    for (int microbatches = 1; microbatches <= 9; ++microbatches) {
      EXPECT_EQ(sliced(ranks, microbatches, 1).ranks, make_schedule("1f1b", ranks, microbatches).ranks);
    }
  }
}

TEST(OneStageOrders, PeakActivations) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 20; ++m) {
      const auto peak = [&](const char* name) { return slow_run(make_schedule(name, p, m)).peak; };
      for (int r = 0; r < p; ++r) {
        EXPECT_EQ(peak("gpipe")[r], m);
        EXPECT_EQ(peak("1f1b")[r], std::min(m, p - r));
        EXPECT_EQ(peak("eager-1f1b")[r], std::min(m, 2 * (p - r) - 1));
        EXPECT_EQ(peak("zb-h1")[r], std::min(m, p));
        EXPECT_EQ(peak("zb-h2")[r], std::min(m, 2 * p - 1));
      }
    }
  }
}

TEST(OneStageOrders, PeakActivationsOfSlices) {
  for (int p = 1; p <= 6; ++p) {
    for (int k = 1; k <= 5; ++k) {
      for (int m = k; m <= 6 * k; m += k) {
        const SlowRun run = slow_run(sliced(p, m, k));
        for (int r = 0; r < p; ++r) EXPECT_EQ(run.peak[r], std::min(m, p - r - 1 + k)) << p << " " << m << " " << k;
      }
    }
  }
}

// A causal sequence: a slice needs the slices before it, its gradient those after it.
TEST(OneStageOrders, SlicesOfASequenceFollowTheirDependencies) {
  for (int p = 1; p <= 5; ++p) {
    for (int k = 1; k <= 4; ++k) {
      const Schedule schedule = sliced(p, 5 * k, k);
      for (const auto& actions : schedule.ranks) {
        const auto at = [&](ActionType type, int m) {
          return std::find(actions.begin(), actions.end(), Action{actions[0].stage, type, m});
        };
        for (int m = 0; m < 5 * k; ++m) {
          if (m % k == 0) continue;
          EXPECT_LT(at(ActionType::F, m - 1), at(ActionType::F, m));
          EXPECT_LT(at(ActionType::B, m), at(ActionType::B, m - 1));
        }
      }
      std::vector<int> sums;
      for (int m = 0; m < 5 * k; ++m) sums.push_back(m / k * k + k - 1 - m % k);
      for (const auto& of_stage : slow_run(schedule).sums) EXPECT_EQ(of_stage, sums);
    }
  }
}

TEST(OneStageOrders, TimesInUnits) {
  const auto makespan = [](const char* name, int p, int m) { return slow_run(make_schedule(name, p, m)).makespan; };
  for (const char* name : {"gpipe", "1f1b", "eager-1f1b"}) {
    EXPECT_EQ(makespan(name, 2, 4), 15);
    EXPECT_EQ(makespan(name, 4, 8), 33);
    EXPECT_EQ(makespan(name, 4, 16), 57);
    EXPECT_EQ(makespan(name, 8, 16), 69);
  }
  for (const char* name : {"zb-h1", "zb-h2"}) {
    EXPECT_EQ(makespan(name, 4, 8), 27);
    EXPECT_EQ(makespan(name, 8, 16), 55);
    EXPECT_EQ(makespan(name, 8, 24), 79);
  }
  EXPECT_EQ(slow_run(make_schedule("zb-h2", 8, 24)).longest_rank, 72);
  // Sequences of k slices, so k times as many micro-batches, each 1/k as long: the bubble is (P-1) (F+B) / k.
  EXPECT_EQ(slow_run(sliced(4, 8 * 2, 2), unit_share(2)).makespan, 28.5);
  EXPECT_EQ(slow_run(sliced(4, 8 * 4, 4), unit_share(4)).makespan, 26.25);
  EXPECT_EQ(slow_run(sliced(8, 16 * 4, 4), unit_share(4)).makespan, 53.25);
}

// The benefit of eager-1f1b's extra activations: in the steady state no hop delays a forward or backward. A power of
// two makes all times exact.
TEST(OneStageOrders, EagerHidesTransfers) {
  const Durations with_transfers{.comm = 0.125};
  for (const int p : {2, 4, 8}) {
    for (const int m : {16, 32, 64}) {
      const double plain = slow_run(make_schedule("1f1b", p, m), with_transfers).makespan;
      const double eager = slow_run(make_schedule("eager-1f1b", p, m), with_transfers).makespan;
      const double work = 3.0 * (m + p - 1);
      EXPECT_EQ(plain - work, (2.0 * (p - 1) * m / p + 2 * (p - 2)) * 0.125);
      EXPECT_EQ(eager - work, 2 * (p - 1) * 0.125) << "only the first micro-batch's way down and the last one's way up";
    }
  }
}

TEST(OneStageOrders, SlicesThatAreRefused) {
  const auto why = [](int microbatches, int slices) {
    return testing::refusal([&] { sliced(4, microbatches, slices); });
  };
  EXPECT_EQ(why(10, 4),
            "schedule seq1f1b: 10 micro-batches cannot be divided into sequences of 4 slices; nearest: 8, 12");
  EXPECT_EQ(why(3, 4), "schedule seq1f1b: 3 micro-batches cannot be divided into sequences of 4 slices; nearest: 4");
  EXPECT_EQ(why(3, 0), "schedule seq1f1b: 3 micro-batches cannot be divided into sequences of 2 slices; nearest: 2, 4");
  EXPECT_EQ(why(4, -2), "schedule seq1f1b: -2 slices; at least 1 is needed");
}

}  // namespace
}  // namespace plumbline::schedule
