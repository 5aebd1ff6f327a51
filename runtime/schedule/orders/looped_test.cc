#include "runtime/schedule/orders/looped.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/schedule/orders/order.h"
#include "runtime/schedule/testing/slow_run.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

using testing::slow_run;
using testing::SlowRun;
using testing::unit_share;

Schedule looped(const char* name, int v, int m, int p, int group = 0) {
  return make_schedule({.name = name, .ranks = p, .microbatches = m, .stages_per_rank = v, .group_size = group});
}

std::string why(const char* name, int v, int m, int p, int group = 0) {
  return testing::refusal([&] { looped(name, v, m, p, group); });
}

// As PyTorch 2.15 prints them, and Megatron-LM's groups, counted by hand from its table of 5 micro-batches in groups of
// 3 (0 1 2, 0 1 2, 3 4, 3 4).
TEST(LoopedOrders, Literal) {
  EXPECT_EQ(to_csv(looped("interleaved-1f1b", 2, 4, 2)),
            "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\r\n"
            "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\r\n");
  EXPECT_EQ(to_csv(looped("looped-bfs", 2, 2, 2)),
            "0F0,0F1,2F0,2F1,2B1,2B0,0B1,0B0\r\n1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0\r\n");
  EXPECT_EQ(to_csv(looped("interleaved-zero-bubble", 2, 4, 2)),
            "0F0,0F1,2F0,2F1,2I0,2W0,0F2,2I1,2W1,0F3,0I0,0W0,2F2,0I1,0W1,2F3,2I2,2W2,2I3,2W3,0I2,0W2,0I3,0W3\r\n"
            "1F0,1F1,3F0,3I0,3F1,3I1,3W0,1F2,1I0,3W1,1F3,1I1,1W0,3F2,3I2,1W1,3F3,3I3,3W2,1I2,3W3,1I3,1W2,1W3\r\n");
  EXPECT_EQ(to_csv(looped("interleaved-1f1b", 2, 5, 2, 3)),
            "0F0,0F1,0F2,2F0,2F1,2F2,2B0,0F3,2B1,0F4,2B2,2F3,0B0,2F4,0B1,0B2,2B3,2B4,0B3,0B4\r\n"
            "1F0,1F1,1F2,3F0,3B0,3F1,3B1,3F2,3B2,1F3,1B0,1F4,1B1,3F3,1B2,3F4,3B3,3B4,1B3,1B4\r\n");
}

TEST(LoopedOrders, OneStageIsTheOrderOfOnePipeline) {
  for (int p = 1; p <= 5; ++p) {
    for (int m : {1, p, 2 * p, 5 * p}) {
      EXPECT_EQ(looped("interleaved-1f1b", 1, m, p).ranks, make_schedule("eager-1f1b", p, m).ranks);
      EXPECT_EQ(looped("interleaved-zero-bubble", 1, m, p).ranks, make_schedule("zb-h1", p, m).ranks);
    }
  }
}

// Micro-batches that PyTorch accepts: a multiple of the number of rounds, which is M / P but at least 1.
bool has_equal_rounds(int m, int p) { return m < p || m % (m / p) == 0; }

TEST(LoopedOrders, RunWithExactPeaks) {
  for (int p = 1; p <= 6; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = 1; m <= 18; ++m) {
        std::vector<int> ascending(m);
        std::iota(ascending.begin(), ascending.end(), 0);
        const std::vector<int> descending(ascending.rbegin(), ascending.rend());

        const SlowRun bfs = slow_run(looped("looped-bfs", v, m, p), unit_share(v));
        EXPECT_EQ(bfs.fault, "") << p << " " << v << " " << m;
        EXPECT_EQ(bfs.peak, std::vector<int>(p, v * m));
        for (const auto& sums : bfs.sums) EXPECT_EQ(sums, descending);

        for (const char* name : {"interleaved-1f1b", "interleaved-zero-bubble"}) {
          if (!has_equal_rounds(m, p)) {
            EXPECT_NE(why(name, v, m, p), "accepted") << name << " " << p << " " << m;
            continue;
          }
          const int round = m < p ? m : m / (m / p);
          const SlowRun run = slow_run(looped(name, v, m, p), unit_share(v));
          EXPECT_EQ(run.fault, "") << name << " " << p << " " << v << " " << m;
          for (const auto& sums : run.sums) EXPECT_EQ(sums, ascending);
          for (int r = 0; r < p; ++r) {
            const int most = name[12] == '1' ? 2 * (p - r - 1) + 1 : p;
            EXPECT_EQ(run.peak[r], std::min(v * m, (v - 1) * round + most)) << name << " " << p << " " << v << " " << m;
          }
        }
      }
    }
  }
}

// Megatron-LM's groups: P <= G <= M, and the last group is empty or at least P.
TEST(LoopedOrders, GivenGroupsRun) {
  int accepted = 0;
  for (int p = 1; p <= 5; ++p) {
    for (int v = 1; v <= 3; ++v) {
      for (int m = 1; m <= 16; ++m) {
        for (int g = 1; g <= m + 1; ++g) {
          const bool takes = p <= g && g <= m && (m % g == 0 || m % g >= p);
          ASSERT_EQ(why("interleaved-1f1b", v, m, p, g) == "accepted", takes) << p << " " << m << " " << g;
          if (!takes) continue;
          ++accepted;
          const SlowRun run = slow_run(looped("interleaved-1f1b", v, m, p, g), unit_share(v));
          EXPECT_EQ(run.fault, "") << p << " " << v << " " << m << " " << g;
          for (int r = 0; r < p; ++r) {
            EXPECT_EQ(run.peak[r], std::min(v * m, (v - 1) * g + 2 * (p - r - 1) + 1))
                << p << v << " " << m << " " << g;
          }
          // All ranks have the same amount of work; no group may be so small that a rank waits once it has begun.
          EXPECT_NEAR(run.bubble(), 3.0 * (p - 1) / v, 1e-9) << p << " " << v << " " << m << " " << g;
        }
      }
    }
  }
  EXPECT_GT(accepted, 400);
}

TEST(LoopedOrders, TimesInUnits) {
  struct Row {
    int p, m;
    double bfs, interleaved, interleaved4, zero_bubble;
  };
  for (const Row& row : {Row{2, 4, 13.5, 13.5, 12.75, 12.5}, Row{4, 8, 28.5, 28.5, 26.25, 25.5},
                         Row{4, 16, 52.5, 52.5, 50.25, 49.5}, Row{8, 16, 58.5, 58.5, 53.25, 51.5}}) {
    const auto makespan = [&](const char* name, int v) {
      return slow_run(looped(name, v, row.m, row.p), unit_share(v)).makespan;
    };
    EXPECT_EQ(makespan("looped-bfs", 2), row.bfs) << row.p;
    EXPECT_EQ(makespan("interleaved-1f1b", 2), row.interleaved) << row.p;
    EXPECT_EQ(makespan("interleaved-1f1b", 4), row.interleaved4) << row.p;
    EXPECT_EQ(makespan("interleaved-zero-bubble", 2), row.zero_bubble) << row.p;
  }
  EXPECT_EQ(slow_run(looped("interleaved-1f1b", 4, 32, 8), unit_share(4)).makespan, 101.25);
  EXPECT_EQ(slow_run(looped("interleaved-1f1b", 2, 8, 4)).peak, (std::vector<int>{11, 9, 7, 5}));
  EXPECT_EQ(slow_run(looped("interleaved-1f1b", 4, 8, 4)).peak, (std::vector<int>{19, 17, 15, 13}));
  EXPECT_EQ(slow_run(looped("interleaved-1f1b", 4, 32, 8)).peak, (std::vector<int>{39, 37, 35, 33, 31, 29, 27, 25}));
}

// (P-1) (I + max(0, F - W)) / V.
TEST(LoopedOrders, BubbleOfInterleavedZeroBubble) {
  for (const int p : {2, 4, 6}) {
    for (const int v : {1, 2, 4}) {
      for (const auto& [f, i, w] :
           {std::tuple{1.0, 1.0, 1.0}, {1.25, 1.0, 0.75}, {1.0, 1.125, 0.875}, {0.875, 1., 1.}}) {
        const SlowRun run = slow_run(looped("interleaved-zero-bubble", v, 3 * p, p), unit_share(v, f, i, w));
        EXPECT_NEAR(run.bubble(), (p - 1) * (i + std::max(0.0, f - w)) / v, 1e-9) << p << " " << v << " " << f << w;
      }
    }
  }
}

TEST(LoopedOrders, Refusals) {
  EXPECT_EQ(why("interleaved-1f1b", 2, 9, 4),
            "schedule interleaved-1f1b: 9 micro-batches on 4 ranks make 2 rounds of unequal size; nearest: 8, 10");
  EXPECT_EQ(
      why("interleaved-zero-bubble", 3, 11, 3),
      "schedule interleaved-zero-bubble: 11 micro-batches on 3 ranks make 3 rounds of unequal size; nearest: 9, 12");
  EXPECT_EQ(
      why("interleaved-1f1b", 2, 8, 4, 3),
      "schedule interleaved-1f1b: group size 3 for 4 ranks and 8 micro-batches; it must be at least the number of "
      "ranks and at most that of micro-batches");
  EXPECT_EQ(why("interleaved-1f1b", 2, 10, 4, 8),
            "schedule interleaved-1f1b: 10 micro-batches in groups of 8 leave 2 for 4 ranks; nearest: 8, 12");
  EXPECT_EQ(why("interleaved-1f1b", -1, 8, 4), "schedule interleaved-1f1b: -1 stages per rank; at least 1 is needed");
  EXPECT_EQ(why("looped-bfs", 2, 8, 4, 4), "schedule looped-bfs: takes no group size");
}

// The cases of PyTorch's test of its own mapping.
TEST(Placement, LoopsAndVs) {
  const auto request = [](int p, int stages) {
    return ScheduleRequest{.name = "any", .ranks = p, .stages_per_rank = stages / p};
  };
  EXPECT_EQ(looped_placement(request(2, 2)), (std::vector<int>{0, 1}));
  EXPECT_EQ(looped_placement(request(2, 4)), (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(looped_placement(request(4, 8)), (std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(v_placement(request(2, 4)), (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(v_placement(request(4, 12)), (std::vector<int>{0, 1, 2, 3, 3, 2, 1, 0, 0, 1, 2, 3}));
  EXPECT_EQ(v_placement(request(4, 16)), (std::vector<int>{0, 1, 2, 3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0}));
}

}  // namespace
}  // namespace plumbline::schedule
