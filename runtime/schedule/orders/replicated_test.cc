#include "runtime/schedule/orders/replicated.h"

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

// Chimera's from the paper's figure for four ranks, micro-batches 2 and 3 going up. DualPipe's from the project's own
// step() (deepseek-ai/DualPipe 3da1bbea, with its computations and transfers replaced by records; a comparison found
// ours equal for up to 10 ranks and 32 micro-batches).
TEST(ReplicatedOrders, Literal) {
  EXPECT_EQ(to_csv(make_schedule("chimera", 4, 4)),
            "0F0,0F1,3F2,3B2,3F3,3B3,0B0,0B1\r\n"
            "1F0,2F2,1F1,2F3,2B2,1B0,2B3,1B1\r\n"
            "1F2,2F0,1F3,2F1,2B0,1B2,2B1,1B3\r\n"
            "0F2,0F3,3F0,3B0,3F1,3B1,0B2,0B3\r\n");
  EXPECT_EQ(to_csv(make_schedule("chimera", 2, 6)),
            "0F0,1F3,1B3,0B0,0F1,1F4,1B4,0B1,0F2,1F5,1B5,0B2\r\n"
            "0F3,1F0,1B0,0B3,0F4,1F1,1B1,0B4,0F5,1F2,1B2,0B5\r\n")
      << "three units, one after the other";
  EXPECT_EQ(to_csv(make_schedule("dualpipe", 2, 4)),
            "0F0,1F2,0F1,1B2,(1F3;0B0)OVERLAP_F_B,1B3,0I1,0W1\r\n"
            "0F2,1F0,0F3,1B0,(1F1;0B2)OVERLAP_F_B,1B1,0I3,0W3\r\n");
  EXPECT_EQ(to_csv(make_schedule("dualpipe", 4, 8)),
            "0F0,0F1,0F2,3F4,3I4,3W4,3F5,(0F3;3B5)OVERLAP_F_B,(3F6;0B0)OVERLAP_F_B,3B6,(3F7;0B1)OVERLAP_F_B,3B7,0I2,"
            "0W2,0I3,0W3\r\n"
            "1F0,2F4,1F1,2F5,1F2,2B4,(2F6;1B0)OVERLAP_F_B,(1F3;2B5)OVERLAP_F_B,(2F7;1B1)OVERLAP_F_B,2B6,1B2,2I7,1I3,"
            "2W7,1W3\r\n"
            "1F4,2F0,1F5,2F1,1F6,2B0,(2F2;1B4)OVERLAP_F_B,(1F7;2B1)OVERLAP_F_B,(2F3;1B5)OVERLAP_F_B,2B2,1B6,2I3,1I7,"
            "2W3,1W7\r\n"
            "0F4,0F5,0F6,3F0,3I0,3W0,3F1,(0F7;3B1)OVERLAP_F_B,(3F2;0B4)OVERLAP_F_B,3B2,(3F3;0B5)OVERLAP_F_B,3B3,0I6,"
            "0W6,0I7,0W7\r\n");
}

TEST(ReplicatedOrders, ShapeOfTheResult) {
  for (const char* name : {"dualpipe", "chimera"}) {
    const Schedule schedule = make_schedule(name, 4, 8);
    EXPECT_EQ(shape_problem(schedule), "");
    EXPECT_EQ(schedule.stages, 4);
    EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 2, 3, 3, 2, 1, 0}));
    EXPECT_EQ(schedule.replica_of_microbatch, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}));
  }
}

// Each replica sums its gradients over its own micro-batches, ascending.
void expect_runs(const char* name, int p, int m) {
  const SlowRun run = slow_run(make_schedule(name, p, m));
  EXPECT_EQ(run.fault, "") << name << ", " << p << " ranks, " << m << " micro-batches";
  ASSERT_EQ(run.sums.size(), 2u * p);
  std::vector<int> ascending(m / 2);
  for (int replica = 0; replica < 2; ++replica) {
    std::iota(ascending.begin(), ascending.end(), replica * (m / 2));
    for (int s = 0; s < p; ++s) EXPECT_EQ(run.sums[replica * p + s], ascending) << name << " " << p << " " << m;
  }
}

TEST(ReplicatedOrders, Run) {
  for (int p = 2; p <= 12; p += 2) {
    for (int m = 2; m <= 40; m += 2) {
      expect_runs("chimera", p, m);
      if (m >= 2 * p) expect_runs("dualpipe", p, m);
    }
  }
}

TEST(ReplicatedOrders, PeakActivations) {
  for (int p = 2; p <= 12; p += 2) {
    for (int m = 2; m <= 40; m += 2) {
      const std::vector<int> peak = slow_run(make_schedule("chimera", p, m)).peak;
      const int half = std::min(m, p) / 2;
      for (int r = 0; r < p; ++r) EXPECT_EQ(peak[r], std::min(half, p - r) + std::min(half, r + 1)) << p << " " << m;
      for (int r = 0; r < p && m >= p; ++r) EXPECT_EQ(peak[r], p / 2 + 1 + std::min(r, p - 1 - r)) << p << " " << m;
      if (m < 2 * p) continue;
      EXPECT_EQ(slow_run(make_schedule("dualpipe", p, m)).peak, std::vector<int>(p, p + 1)) << m;
    }
  }
}

TEST(ReplicatedOrders, TimesOfChimera) {
  const auto makespan = [](int p, int m, double backward) {
    return slow_run(make_schedule("chimera", p, m), {.input = backward / 2, .weight = backward / 2}).makespan;
  };
  EXPECT_EQ(makespan(4, 4, 2), 16);
  EXPECT_EQ(makespan(8, 8, 2), 36);
  for (const int p : {2, 4, 8, 12}) {
    // The paper's ratios: (P-2) / (2M+P-2) of the time where F = B, and (P-2) / (3M/2+P-2) where B = 2F and M = P.
    for (const int m : {p, 2 * p, 5 * p}) EXPECT_EQ(makespan(p, m, 1), 2 * m + p - 2) << p << " " << m;
    EXPECT_EQ(makespan(p, p, 2), 3 * p + 2 * (p - 2)) << p;
  }
}

// DualPipe's table: (PP/2-1) (F&B + B - 3W) where F&B = F + B and F = I, and PP + 1 activations.
TEST(ReplicatedOrders, TimesOfDualPipe) {
  EXPECT_EQ(slow_run(make_schedule("dualpipe", 8, 20)).makespan, 66);
  EXPECT_EQ(slow_run(make_schedule("dualpipe", 16, 40)).makespan, 134);
  EXPECT_EQ(slow_run(make_schedule("dualpipe", 4, 8)).makespan, 26);
  for (const int p : {2, 4, 8, 16}) {
    for (const int m : {2 * p, 3 * p}) {
      for (const double w : {1.0, 0.875}) {
        EXPECT_EQ(slow_run(make_schedule("dualpipe", p, m), {.weight = w}).bubble(),
                  (p / 2 - 1) * ((2 + w) + (1 + w) - 3 * w))
            << p << " " << m;
      }
    }
  }
}

TEST(ReplicatedOrders, Refusals) {
  const auto why = [](const char* name, int p, int m) { return testing::refusal([&] { make_schedule(name, p, m); }); };
  EXPECT_EQ(why("dualpipe", 5, 20),
            "schedule dualpipe: 5 ranks; the two directions need an even number, nearest: 4, 6");
  EXPECT_EQ(why("chimera", 1, 20), "schedule chimera: 1 rank; the two directions need an even number, nearest: 2");
  EXPECT_EQ(why("chimera", 4, 7),
            "schedule chimera: 7 micro-batches; the two directions need an even number, nearest: 6, 8");
  EXPECT_EQ(why("dualpipe", 4, 6),
            "schedule dualpipe: 6 micro-batches for 4 ranks; at least 8, two a rank, are needed");
}

}  // namespace
}  // namespace plumbline::schedule
