#include "runtime/schedule/orders/v/v_fixed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/schedule/testing/slow_run.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

using testing::slow_run;
using testing::SlowRun;
using testing::unit_share;

// As PyTorch 2.15 prints them.
TEST(FixedVOrders, Literal) {
  EXPECT_EQ(to_csv(make_schedule("zb-v", 2, 3)),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0I0,0W0,3F2,3I2,3W2,0I1,0W1,0I2,0W2\r\n"
            "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1I1,2I2,1I2,1W1,2W2,1W2\r\n");
  EXPECT_EQ(to_csv(make_schedule("zb-v", 2, 2)),
            "0F0,0F1,3F0,3I0,3W0,3F1,3I1,3W1,0I0,0W0,0I1,0W1\r\n"
            "1F0,2F0,1F1,2F1,2I0,2W0,1I0,1W0,2I1,2W1,1I1,1W1\r\n")
      << "fewer than 2P - 1 micro-batches";
  EXPECT_EQ(to_csv(make_schedule("dualpipe-v", 2, 4)),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,(3F3;0B1)OVERLAP_F_B,3B3,0I2,"
            "0W2,0I3,0W3\r\n"
            "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,"
            "2W3,1W3\r\n");
}

TEST(FixedVOrders, RunWithExactPeaks) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 24; ++m) {
      std::vector<int> ascending(m);
      std::iota(ascending.begin(), ascending.end(), 0);
      const SlowRun zb = slow_run(make_schedule("zb-v", p, m), unit_share(2));
      EXPECT_EQ(zb.fault, "") << p << " ranks, " << m << " micro-batches";
      for (int r = 0; r < p; ++r) {
        // The last term applies when there are too few micro-batches to fill the pipeline.
        EXPECT_EQ(zb.peak[r], std::min({2 * p, 2 * m, m + r + 1})) << p << " ranks, " << m << " micro-batches";
      }
      for (const auto& sums : zb.sums) EXPECT_EQ(sums, ascending);

      if (m < 2 * p) continue;
      const SlowRun dual = slow_run(make_schedule("dualpipe-v", p, m), unit_share(2));
      EXPECT_EQ(dual.fault, "") << p << " ranks, " << m << " micro-batches";
      EXPECT_EQ(dual.peak, std::vector<int>(p, 2 * p + 1)) << p << " ranks, " << m << " micro-batches";
      for (const auto& sums : dual.sums) EXPECT_EQ(sums, ascending);
    }
  }
}

TEST(FixedVOrders, TimesInUnits) {
  struct Row {
    int p, m;
    double zb, dual;
  };
  for (const Row& row :
       {Row{2, 4, 12.5, 13}, Row{4, 8, 25.5, 27}, Row{4, 16, 49.5, 51}, Row{8, 16, 51.5, 55}, Row{8, 24, 75.5, 79}}) {
    EXPECT_EQ(slow_run(make_schedule("zb-v", row.p, row.m), unit_share(2)).makespan, row.zb) << row.p << " " << row.m;
    EXPECT_EQ(slow_run(make_schedule("dualpipe-v", row.p, row.m), unit_share(2)).makespan, row.dual)
        << row.p << " " << row.m;
  }
}

// The property behind the name zb-v: for F = I = W, a rank that has begun does not wait; without enough micro-batches
// it does.
TEST(FixedVOrders, NoRankWaitsInZbV) {
  for (int p = 1; p <= 8; ++p) {
    for (const int m : {2 * p - 1, 2 * p, 4 * p + 1}) {
      EXPECT_EQ(slow_run(make_schedule("zb-v", p, m)).longest_rank, 6 * m) << p << " " << m;
    }
  }
  EXPECT_EQ(slow_run(make_schedule("zb-v", 4, 4)).longest_rank, 6 * 4 + 6);
  EXPECT_EQ(slow_run(make_schedule("zb-v", 4, 16), {.weight = 0.5}).longest_rank, 5 * 16 + 3);
  EXPECT_EQ(slow_run(make_schedule("zb-v", 8, 32), {.weight = 0.5}).longest_rank, 5 * 32 + 7);
}

// DualPipe's table has (PP/2-1) (F&B + B - 3W) for PP stages, B a full backward. With F&B = F + B that holds for F = I;
// otherwise the order takes (P-1) (2F + I - W).
TEST(FixedVOrders, BubbleOfDualPipeV) {
  const auto bubble = [](int p, int m, const Durations& d) {
    return slow_run(make_schedule("dualpipe-v", p, m), d).bubble();
  };
  EXPECT_EQ(slow_run(make_schedule("dualpipe-v", 4, 10)).makespan, 66);
  EXPECT_EQ(slow_run(make_schedule("dualpipe-v", 8, 20)).makespan, 134);
  for (const int p : {1, 2, 4, 8}) {
    for (const int m : {2 * p, 2 * p + 2, 5 * p}) {
      EXPECT_EQ(bubble(p, m, {}), (p - 1) * (3 + 2 - 3));
      EXPECT_EQ(bubble(p, m, {.weight = 0.875}), (p - 1) * (2 * 1.875 + 1 - 3 * 0.875)) << p << " " << m;
    }
  }
  for (const int p : {4, 8}) {
    for (const auto& [f, i, w] : {std::tuple{1.0, 1.125, 0.875}, {1.125, 1.0, 1.0}}) {
      EXPECT_EQ(bubble(p, 3 * p, {.forward = f, .input = i, .weight = w}), (p - 1) * (2 * f + i - w)) << p << " " << f;
    }
  }
}

TEST(FixedVOrders, Refusals) {
  const auto why = [](const char* name, int p, int m, int v) {
    return testing::refusal(
        [&] { make_schedule({.name = name, .ranks = p, .microbatches = m, .stages_per_rank = v}); });
  };
  EXPECT_EQ(why("dualpipe-v", 4, 7, 0),
            "schedule dualpipe-v: 7 micro-batches for 8 stages; at least as many as stages are needed");
  EXPECT_EQ(why("dualpipe-v", 4, 8, 3), "schedule dualpipe-v: 3 stages per rank; it has 2");
  EXPECT_EQ(why("zb-v", 4, 8, 1), "schedule zb-v: 1 stages per rank; it has 2");
  EXPECT_EQ(why("zb-v", 4, 8, 2), "accepted");
}

// Many more ranks than micro-batches: the order for 2P - 1 of them is cut to size without being built.
TEST(FixedVOrders, ManyRanksFewMicrobatches) {
  const Schedule schedule = make_schedule("zb-v", 100000, 1);
  EXPECT_EQ(to_csv(Schedule{.name = "zb-v", .ranks = {schedule.ranks[77]}}),
            "77F0,199922F0,199922I0,199922W0,77I0,77W0\r\n");
}

}  // namespace
}  // namespace plumbline::schedule
