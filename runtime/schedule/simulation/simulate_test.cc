#include "runtime/schedule/simulation/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "runtime/error.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/random_schedule.h"
#include "runtime/schedule/testing/zero_bubble_table.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

TEST(Simulate, ClosedFormsOfGPipeAnd1F1B) {
  for (const std::string name : {"gpipe", "1f1b"}) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (int microbatches = 1; microbatches <= 16; ++microbatches) {
        const double tf = 5, tb = 10.5;
        const Timeline timeline = simulate(make_schedule(name, ranks, microbatches), tf, tb);
        const std::string context = name + ", " + std::to_string(ranks) + " x " + std::to_string(microbatches);
        EXPECT_NEAR(timeline.makespan, (microbatches + ranks - 1) * (tf + tb), 1e-9) << context;
        EXPECT_NEAR(timeline.longest_rank, timeline.makespan, 1e-9) << context << ": rank 0 begins and ends the step";
        EXPECT_NEAR(timeline.bubble_makespan, (ranks - 1.0) / (microbatches + ranks - 1), 1e-12) << context;
        EXPECT_NEAR(timeline.bubble_longest_rank, timeline.bubble_makespan, 1e-12) << context;
        for (int r = 0; r < ranks; ++r) {
          EXPECT_NEAR(timeline.busy[r], microbatches * (tf + tb), 1e-9) << context;
          EXPECT_NEAR(timeline.begin[r], r * tf, 1e-9) << context;
          EXPECT_NEAR(timeline.end[r], timeline.makespan - r * tb, 1e-9) << context;
          EXPECT_EQ(timeline.peak_live[r], name == "gpipe" ? microbatches : std::min(microbatches, ranks - r))
              << context;
        }
      }
    }
  }
}

// (M+P-1)(tf+tb) + [2(P-1)M/P + 2(P-2)] comm where P divides M: even if transfers take no rank's time, 1F1B waits for
// 2(P-1) of them in every P micro-batches.
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

// The columns 1F1B, ZB-H1 and ZB-H2 of the zero-bubble paper's table of bubble rates, which refer to the longest rank.
TEST(Simulate, PublishedBubbles) {
  for (const testing::ZeroBubbleRow& row : testing::kZeroBubbleTable) {
    const auto simulated = [&](const char* name) {
      return simulate(make_schedule(name, row.ranks, row.microbatches), row.durations);
    };
    EXPECT_NEAR(simulated("1f1b").bubble_longest_rank, row.one_f_one_b, 5e-5) << row.where();
    EXPECT_NEAR(simulated("zb-h1").bubble_longest_rank, row.zb_h1, 5e-5) << row.where();
    EXPECT_NEAR(simulated("zb-h2").bubble_longest_rank, row.zb_h2, 5e-5) << row.where();
    EXPECT_NEAR(simulated("zb-h2").bubble_makespan, row.zb_h2_makespan, 5e-5) << row.where();
  }
}

// Idle time within the longest rank: (P-1)(F+B) for 1f1b, (P-1)(I + max(0, F-W)) for zb-h1 from P micro-batches on, and
// max(0, (P-1)(F+I-2W)) for zb-h2 from 2P-1 on where W <= F. The paper states the second for W <= F: (P-1)(F+I-W).
TEST(Simulate, ClosedFormsOfZeroBubbleSchedules) {
  const double times[] = {1, 1.5, 2, 3};
  for (int ranks = 1; ranks <= 6; ++ranks) {
    for (int microbatches : {ranks, ranks + 1, 2 * ranks - 1, 2 * ranks, 24}) {
      for (double f : times) {
        for (double i : times) {
          for (double w : times) {
            const Durations durations{.forward = f, .input = i, .weight = w, .backward = {}};
            const auto idle = [&](const char* name) {
              return simulate(make_schedule(name, ranks, microbatches), durations).longest_rank -
                     microbatches * (f + i + w);
            };
            const auto context = [&] {
              return std::to_string(ranks) + " x " + std::to_string(microbatches) + ", F " + std::to_string(f) + " I " +
                     std::to_string(i) + " W " + std::to_string(w);
            };
            EXPECT_NEAR(idle("1f1b"), (ranks - 1) * (f + i + w), 1e-9) << context();
            EXPECT_NEAR(idle("zb-h1"), (ranks - 1) * (i + std::max(0.0, f - w)), 1e-9) << context();
            if (microbatches >= 2 * ranks - 1 && w <= f) {
              EXPECT_NEAR(idle("zb-h2"), std::max(0.0, (ranks - 1) * (f + i - 2 * w)), 1e-9) << context();
            }
          }
        }
      }
    }
  }
}

TEST(Simulate, UnitTimesOfZeroBubbleSchedules) {
  const std::map<std::pair<int, int>, double> makespans = {{{4, 8}, 27}, {{8, 16}, 55}, {{8, 24}, 79}};
  for (const auto& [size, makespan] : makespans) {
    const auto [ranks, microbatches] = size;
    const Timeline h1 = simulate(make_schedule("zb-h1", ranks, microbatches), 1, 2);
    EXPECT_DOUBLE_EQ(h1.makespan, makespan);
    EXPECT_DOUBLE_EQ(h1.longest_rank, makespan);
    const Timeline h2 = simulate(make_schedule("zb-h2", ranks, microbatches), 1, 2);
    EXPECT_DOUBLE_EQ(h2.makespan, makespan);
    EXPECT_DOUBLE_EQ(h2.longest_rank, 3 * microbatches) << "no bubble";
    EXPECT_DOUBLE_EQ(h2.bubble_longest_rank, 0);
  }
}

TEST(Simulate, PeakActivationsOfZeroBubbleSchedules) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int microbatches = 1; microbatches <= 20; ++microbatches) {
      const auto peaks = [&](const char* name) {
        return simulate(make_schedule(name, ranks, microbatches), 1, 2).peak_live;
      };
      EXPECT_EQ(peaks("zb-h1"), std::vector<int>(ranks, std::min(microbatches, ranks))) << microbatches;
      EXPECT_EQ(peaks("zb-h2"), std::vector<int>(ranks, std::min(microbatches, 2 * ranks - 1))) << microbatches;
    }
  }
}

// A rank's idle time within the makespan, in units of F = I = W. The unsplit orders: (P-1)(F+B) (arXiv 1811.06965
// section 2.3, arXiv 2104.04473 section 2.2). The zero-bubble ones, counted by hand: P-1, and more with fewer
// micro-batches than the order is designed for.
double idle(const std::string& name, int ranks, int microbatches) {
  if (name == "zb-h1") return ranks - 1 + std::max(0, ranks - microbatches);
  if (name == "zb-h2") return ranks - 1 + std::max(0, (2 * ranks - 1 - microbatches) / 2);
  return 3.0 * (ranks - 1);
}

TEST(Simulate, IdealBubbleIsTheFormula) {
  for (const std::string name : {"gpipe", "1f1b", "zb-h1", "zb-h2"}) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (int microbatches = 1; microbatches <= 20; ++microbatches) {
        const double still = idle(name, ranks, microbatches);
        EXPECT_NEAR(ideal_bubble(make_schedule(name, ranks, microbatches)), still / (3.0 * microbatches + still), 1e-12)
            << name << ", " << ranks << " x " << microbatches;
      }
    }
  }
}

TEST(Simulate, FullBackwardTakesBothHalvesOrItsOwnTime) {
  const Schedule schedule = make_schedule("gpipe", 1, 3);
  EXPECT_DOUBLE_EQ(simulate(schedule, {.forward = 1, .input = 4, .weight = 2, .backward = {}}).makespan, 21);
  EXPECT_DOUBLE_EQ(simulate(schedule, {.forward = 1, .input = 4, .weight = 2, .backward = 5}).makespan, 18);
}

// Timelines by hand, with F = I = W = 1.
TEST(Simulate, FirstStageMayDoItsWholeBackwardInW) {
  const SimulateOptions defers{.first_stage_defers = true};
  // Rank 0 gets its gradients at 3 and 6: between them it has time for its first I, but a deferred one does nothing.
  const Schedule late = parse_csv("0F0,0F1,0I0,0I1,0W0,0W1\r\n1F0,1I0,1W0,1F1,1I1,1W1\r\n", "late");
  const Timeline both = simulate(late, Durations{});
  EXPECT_EQ(both.begin, (std::vector<double>{0, 1}));
  EXPECT_EQ(both.end, (std::vector<double>{9, 7}));
  const Timeline deferred = simulate(late, Durations{}, defers);
  EXPECT_EQ(deferred.end, (std::vector<double>{10, 7}));
  EXPECT_EQ(deferred.busy, both.busy) << "the same work, elsewhere";
  EXPECT_EQ(deferred.peak_live, both.peak_live);
  // Another stage of its rank, and other stages in general, keep their times.
  const Schedule two_stages = parse_csv("0F0,1F0,1I0,0I0,1W0,0W0\r\n", "two stages");
  const Durations unequal{.forward = 1, .input = 10, .weight = 100, .backward = {}};
  EXPECT_DOUBLE_EQ(simulate(two_stages, unequal, defers).makespan, 222);
  // The times agree if W follows I directly, as on rank 0 of these.
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "zb-h2"}) {
    const Schedule schedule = make_schedule(name, 4, 6);
    EXPECT_EQ(simulate(schedule, Durations{}, defers).end, simulate(schedule, Durations{}).end) << name;
  }
}

TEST(Simulate, UnitTimesOfPyTorchsOrders) {
  const std::map<std::pair<int, int>, double> makespans = {{{2, 4}, 15}, {{4, 8}, 33}, {{4, 16}, 57}, {{8, 16}, 69}};
  for (const auto& [size, makespan] : makespans) {
    for (const char* name : {"gpipe", "1f1b"}) {
      EXPECT_DOUBLE_EQ(simulate(make_schedule(name, size.first, size.second), 1, 2).makespan, makespan) << name;
    }
  }
}

// Any schedule: relaxes all starts until nothing moves (a longest path), and searches the lists anew each time.
TEST(Simulate, AgreesWithRelaxationOnRandomSchedules) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const Schedule schedule = testing::random_pipe(random).compute;
    Durations durations{.forward = 1.0 + random() % 5,
                        .input = 1.0 * (random() % 5),
                        .weight = 1.0 * (random() % 5),
                        .backward = {},
                        .comm = 1.0 * (random() % 4)};
    if (random() % 2 == 0) durations.backward = random() % 9;
    const bool defers = random() % 2 == 0;
    const auto time_of = [&](const Action& a) {
      const double input = durations.input, weight = durations.weight;
      if (a.type == F) return durations.forward;
      if (a.type == B) return durations.backward ? *durations.backward : input + weight;
      if (defers && a.stage == 0) return a.type == I ? 0 : input + weight;
      return a.type == I ? input : weight;
    };
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
            const double delay = schedule.rank_of_stage[stage] == static_cast<int>(rank) ? 0 : durations.comm;
            if (found != ends.end()) start = std::max(start, found->second + delay);
          };
          if (a.type == F) after(a.stage - 1, F);
          if (a.type == B || a.type == I) {
            after(a.stage + 1, B);
            after(a.stage + 1, I);
          }
          free = start + time_of(a);
          double& end = ends.try_emplace(to_string(a), -1).first->second;
          moved = moved || end != free;
          end = free;
        }
      }
    }
    const Timeline timeline = simulate(schedule, durations, {.first_stage_defers = defers});
    double makespan = 0, longest = 0, busy = 0;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      const Action& first = schedule.ranks[rank].front();
      const double begin = ends.at(to_string(first)) - time_of(first);
      const double end = ends.at(to_string(schedule.ranks[rank].back()));
      ASSERT_NEAR(timeline.begin[rank], begin, 1e-9) << "seed " << seed;
      ASSERT_NEAR(timeline.end[rank], end, 1e-9) << "seed " << seed;
      makespan = std::max(makespan, end);
      longest = std::max(longest, end - begin);
      for (const Action& a : schedule.ranks[rank]) busy += time_of(a);
    }
    const double ranks = static_cast<double>(schedule.ranks.size());
    ASSERT_NEAR(timeline.makespan, makespan, 1e-9) << "seed " << seed;
    ASSERT_NEAR(timeline.longest_rank, longest, 1e-9) << "seed " << seed;
    ASSERT_NEAR(timeline.bubble_makespan, 1 - busy / (ranks * makespan), 1e-12) << "seed " << seed;
    ASSERT_NEAR(timeline.bubble_longest_rank, 1 - busy / (ranks * longest), 1e-12) << "seed " << seed;
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
  EXPECT_THROW(simulate(schedule, {.forward = 1, .input = -1, .weight = 1, .backward = 1}), InputError);
  EXPECT_THROW(simulate(schedule, {.forward = 1, .input = 1, .weight = -1, .backward = 1}), InputError);
  EXPECT_THROW(simulate(schedule, {.forward = 1, .input = 1, .weight = 1, .backward = -1}), InputError);
  EXPECT_THROW(simulate(lower(schedule, chain_edges(2)), 1, 1), InputError);
  EXPECT_THROW(simulate(parse_csv("0F0,0B0,0F1,0B1\r\n1F0,1F1,1B0,1B1\r\n", "s"), 1, 1), InputError) << "deadlock";
  EXPECT_THROW(simulate(parse_csv("0F0,0B0\r\n1F0\r\n", "s"), 1, 1), InputError) << "incomplete";
}

}  // namespace
}  // namespace plumbline::schedule
