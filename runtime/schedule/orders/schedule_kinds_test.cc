#include "runtime/schedule/orders/schedule_kinds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "runtime/schedule/check/check.h"
#include "runtime/schedule/simulation/simulate.h"
#include "runtime/schedule/testing/slow_run.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"
#include "runtime/text/join.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

std::string message_of(const std::string& name, int ranks, int microbatches) {
  return testing::refusal([&] { make_schedule(name, ranks, microbatches); });
}

TEST(Generators, LiteralOrders) {
  EXPECT_EQ(to_csv(make_schedule("gpipe", 2, 3)), "0F0,0F1,0F2,0B0,0B1,0B2\r\n1F0,1F1,1F2,1B0,1B1,1B2\r\n");
  EXPECT_EQ(to_csv(make_schedule("1f1b", 3, 4)),
            "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\r\n"
            "1F0,1F1,1B0,1F2,1B1,1F3,1B2,1B3\r\n"
            "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3\r\n");
  EXPECT_EQ(to_csv(make_schedule("1f1b", 4, 2)),
            "0F0,0F1,0B0,0B1\r\n1F0,1F1,1B0,1B1\r\n2F0,2F1,2B0,2B1\r\n3F0,3B0,3F1,3B1\r\n")
      << "fewer micro-batches than ranks";
  EXPECT_EQ(to_csv(make_schedule("1f1b", 1, 2)), "0F0,0B0,0F1,0B1\r\n");
}

// zb-h1 as PyTorch 2.15's ScheduleInterleavedZeroBubble prints it for one stage on each rank; a comparison found the
// two equal for 1 to 8 ranks and every number of micro-batches up to 32 that PyTorch accepts.
TEST(Generators, LiteralOrdersOfZeroBubble) {
  EXPECT_EQ(to_csv(make_schedule("zb-h1", 3, 4)),
            "0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3\r\n"
            "1F0,1F1,1I0,1F2,1I1,1W0,1F3,1I2,1W1,1I3,1W2,1W3\r\n"
            "2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3\r\n");
  EXPECT_EQ(to_csv(make_schedule("zb-h1", 3, 2)),
            "0F0,0F1,0I0,0W0,0I1,0W1\r\n"
            "1F0,1F1,1I0,1I1,1W0,1W1\r\n"
            "2F0,2I0,2F1,2I1,2W0,2W1\r\n")
      << "fewer micro-batches than ranks";
  EXPECT_EQ(to_csv(make_schedule("zb-h1", 1, 2)), "0F0,0I0,0W0,0F1,0I1,0W1\r\n");
  EXPECT_EQ(to_csv(make_schedule("zb-h2", 3, 5)),
            "0F0,0F1,0F2,0F3,0F4,0I0,0W0,0I1,0W1,0I2,0W2,0I3,0W3,0I4,0W4\r\n"
            "1F0,1F1,1F2,1I0,1F3,1I1,1F4,1I2,1W0,1I3,1W1,1I4,1W2,1W3,1W4\r\n"
            "2F0,2I0,2F1,2I1,2F2,2I2,2F3,2I3,2F4,2I4,2W0,2W1,2W2,2W3,2W4\r\n");
  EXPECT_EQ(to_csv(make_schedule("zb-h2", 3, 2)), to_csv(make_schedule("zb-h1", 3, 2)))
      << "too few micro-batches to hold more";
  EXPECT_EQ(to_csv(make_schedule("zb-h2", 1, 2)), "0F0,0I0,0W0,0F1,0I1,0W1\r\n");
}

// Micro-batches that every kind accepts on an even number of ranks.
int microbatches_for_all(int ranks) { return 4 * ranks; }

bool is_plain(const Schedule& schedule) {
  const auto is_grouped = [](const Action& action) { return action.overlaps_next; };
  return schedule.replicas() == 1 && std::none_of(schedule.ranks.begin(), schedule.ranks.end(), [&](const auto& rank) {
           return std::any_of(rank.begin(), rank.end(), is_grouped);
         });
}

TEST(Generators, ShapeOfTheResult) {
  for (const ScheduleKind& kind : schedule_kinds()) {
    const Schedule schedule = make_schedule(std::string(kind.name), 4, 16);
    EXPECT_EQ(shape_problem(schedule), "");
    EXPECT_EQ(schedule.name, kind.name);
    EXPECT_EQ(schedule.ranks.size(), 4u);
    EXPECT_EQ(schedule.stages, 4 * kind.stages_per_rank) << kind.name;
    EXPECT_EQ(schedule.microbatches, 16);
  }
  EXPECT_EQ(make_schedule("1f1b", 3, 5).rank_of_stage, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(make_schedule("looped-bfs", 3, 5).rank_of_stage, (std::vector<int>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(make_schedule("zb-v", 3, 5).rank_of_stage, (std::vector<int>{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(
      join(schedule_names()),
      "gpipe, 1f1b, eager-1f1b, interleaved-1f1b, looped-bfs, zb-h1, zb-h2, zb-auto, interleaved-zero-bubble, zb-v, "
      "zb-v-greedy, v-half, v-min, dualpipe-v, dualpipe, chimera, hanayo, seq1f1b, forward-only");
}

// Like PyTorch's get_schedule_class: case does not matter, and the error for an unknown name quotes it.
TEST(Generators, FoundByNameInAnyCase) {
  EXPECT_EQ(schedule_kind("GPipe").name, "gpipe");
  EXPECT_EQ(schedule_kind("1F1B").name, "1f1b");
  EXPECT_EQ(schedule_kind("INTERLEAVED-1F1B").name, "interleaved-1f1b");
  EXPECT_EQ(schedule_kind("Looped-BFS").name, "looped-bfs");
  EXPECT_EQ(make_schedule("DualPipe-V", 2, 4).name, "dualpipe-v");
  for (const std::string& name : schedule_names()) EXPECT_EQ(schedule_kind(name).name, name);
  testing::expect_part(message_of("Unknown", 2, 2), "'Unknown'");
}

TEST(Generators, EveryKindSaysWhatItIs) {
  for (const ScheduleKind& kind : schedule_kinds()) {
    for (const std::string_view text : {kind.summary, kind.placement, kind.constraints, kind.source}) {
      EXPECT_FALSE(text.empty()) << kind.name;
      EXPECT_EQ(text.find('\n'), std::string_view::npos) << kind.name;
    }
  }
}

// PyTorch's test of its orders (test_pipeline_order and its relatives), stages per rank, micro-batches, ranks.
TEST(Generators, ShapesOfPyTorchsTest) {
  struct Shape {
    int v, m, p;
  };
  for (const Shape& s : std::vector<Shape>{{2, 2, 2},   {2, 4, 4},    {2, 8, 2},  {2, 8, 4},  {2, 8, 8},  {4, 4, 4},
                                           {4, 8, 4},   {4, 8, 8},    {4, 16, 4}, {4, 32, 4}, {4, 64, 4}, {4, 16, 16},
                                           {4, 32, 32}, {4, 128, 64}, {3, 2, 2},  {3, 8, 2},  {3, 12, 4}, {4, 6, 3},
                                           {4, 10, 5},  {2, 3, 4},    {2, 4, 4},  {2, 10, 4}, {2, 15, 4}}) {
    for (const char* name : {"interleaved-1f1b", "looped-bfs", "interleaved-zero-bubble", "zb-v", "dualpipe-v"}) {
      const ScheduleRequest request{.name = name, .ranks = s.p, .microbatches = s.m, .stages_per_rank = s.v};
      const bool is_v = request.name.ends_with("-v");
      const bool refused = is_v && (s.v != 2 || (request.name == "dualpipe-v" && s.m < 2 * s.p));
      EXPECT_EQ(testing::refusal([&] { make_schedule(request); }) != "accepted", refused)
          << name << s.v << " " << s.m << " " << s.p;
      if (refused) continue;
      const Schedule schedule = make_schedule(request);
      EXPECT_EQ(testing::slow_run(schedule).fault, "") << name << " " << s.v << " " << s.m << " " << s.p;
    }
  }
}

// 1F1B from another definition: all ranks step through unit time slots; a rank executes a backward whenever the
// gradient of its next micro-batch is available, else a forward when its input is available and it holds fewer than P -
// r activations.
std::vector<std::vector<Action>> greedy_one_f_one_b(int ranks, int microbatches) {
  std::vector<std::vector<Action>> order(ranks);
  std::vector<int> forwards(ranks), backwards(ranks);
  for (bool all_done = false; !all_done;) {
    const std::vector<int> f = forwards, b = backwards;  // the state at the beginning of the slot
    all_done = true;
    for (int r = 0; r < ranks; ++r) {
      const int gradients = r + 1 < ranks ? b[r + 1] : f[r];
      const int inputs = r > 0 ? f[r - 1] : microbatches;
      if (b[r] < gradients) {
        order[r].push_back({r, B, backwards[r]++});
      } else if (f[r] < inputs && f[r] - b[r] < ranks - r) {
        order[r].push_back({r, F, forwards[r]++});
      }
      all_done = all_done && backwards[r] == microbatches;
    }
  }
  return order;
}

TEST(Generators, OneFOneBIsTheGreedyOrderWithBoundedMemory) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int microbatches = 1; microbatches <= 16; ++microbatches) {
      EXPECT_EQ(make_schedule("1f1b", ranks, microbatches).ranks, greedy_one_f_one_b(ranks, microbatches))
          << ranks << " ranks, " << microbatches << " micro-batches";
    }
  }
}

// Only one order has all forwards first and its backwards ascending: count and compare neighbours.
TEST(Generators, GPipeIsAllForwardsThenAllBackwardsAscending) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int microbatches = 1; microbatches <= 16; ++microbatches) {
      const Schedule schedule = make_schedule("gpipe", ranks, microbatches);
      for (int r = 0; r < ranks; ++r) {
        const auto& actions = schedule.ranks[r];
        ASSERT_EQ(actions.size(), 2u * microbatches);
        EXPECT_EQ(actions.front(), (Action{r, F, 0}));
        EXPECT_EQ(actions.back(), (Action{r, B, microbatches - 1}));
        for (std::size_t i = 1; i < actions.size(); ++i) {
          const bool turn = actions[i - 1].type == F && actions[i].type == B;
          EXPECT_EQ(actions[i].microbatch, turn ? 0 : actions[i - 1].microbatch + 1);
          EXPECT_FALSE(actions[i - 1].type == B && actions[i].type == F);
        }
      }
    }
  }
}

// Every kind gives a valid schedule or refuses the numbers in one line.
TEST(Generators, AllAreValid) {
  std::map<std::string, int> made;
  for (const std::string& name : schedule_names()) {
    const bool forward_only = name == "forward-only";
    for (int ranks = 1; ranks <= 6; ++ranks) {
      for (int microbatches = 1; microbatches <= 13; ++microbatches) {
        const std::string refused = testing::refusal([&] { make_schedule(name, ranks, microbatches); });
        if (refused != "accepted") {
          EXPECT_EQ(refused.rfind("schedule " + name + ": ", 0), 0u) << refused;
          EXPECT_EQ(refused.find('\n'), std::string::npos) << refused;
          continue;
        }
        ++made[name];
        const Schedule schedule = make_schedule(name, ranks, microbatches);
        EXPECT_EQ(testing::slow_run(schedule, {}, forward_only).fault, "")
            << name << ", " << ranks << " ranks, " << microbatches << " micro-batches";
        if (!is_plain(schedule)) continue;
        EXPECT_EQ(violations(schedule, chain_edges(schedule.stages), {.forward_only = forward_only}),
                  std::vector<std::string>{})
            << name << ", " << ranks << " ranks, " << microbatches << " micro-batches";
      }
    }
    EXPECT_GE(made[name], 9) << name;
  }
}

TEST(Generators, TakeTheTimeThatTheSimulatorSays) {
  const Durations durations{.forward = 1.5, .input = 1.25, .weight = 0.75, .comm = 0.125};
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = make_schedule(name, 4, microbatches_for_all(4));
    if (!is_plain(schedule)) continue;
    const testing::SlowRun run = testing::slow_run(schedule, durations, name == "forward-only");
    const Timeline timeline = simulate(schedule, durations);
    EXPECT_EQ(timeline.makespan, run.makespan) << name;
    EXPECT_EQ(timeline.longest_rank, run.longest_rank) << name;
    EXPECT_EQ(timeline.peak_live, run.peak) << name;
  }
}

// A gradient is summed in the order of the W (or B), so schedules give the same bits only if they share that order. The
// kinds whose summary states another order have their own tests.
TEST(Generators, EveryStageAddsUpByAscendingMicrobatch) {
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (kind.name == "forward-only") continue;
    for (const int ranks : {2, 4, 6}) {
      const Schedule schedule = make_schedule(std::string(kind.name), ranks, microbatches_for_all(ranks));
      bool ascending = true;
      for (const auto& sums : testing::slow_run(schedule).sums) {
        ascending = ascending && std::is_sorted(sums.begin(), sums.end());
      }
      EXPECT_EQ(ascending, kind.summary.find("DESCENDING") == std::string_view::npos) << kind.name << ", " << ranks;
    }
  }
}

TEST(Generators, RefusesInOneLine) {
  const std::string known = "; expected one of " + join(schedule_names());
  EXPECT_EQ(message_of("1b1f", 2, 2), "there is no schedule '1b1f'" + known);
  EXPECT_EQ(message_of("", 2, 2), "there is no schedule ''" + known);
  EXPECT_EQ(message_of("GPipe\n", 2, 2), "there is no schedule 'GPipe\\x0a'" + known);
  EXPECT_EQ(message_of("gpipe", 0, 2), "schedule gpipe: 0 ranks; at least 1 is needed");
  EXPECT_EQ(message_of("1f1b", 2, 0), "schedule 1f1b: 0 micro-batches; at least 1 is needed");
  EXPECT_EQ(message_of("1f1b", 2, -7), "schedule 1f1b: -7 micro-batches; at least 1 is needed");
  const int most = std::numeric_limits<int>::max();
  EXPECT_EQ(message_of("gpipe", most, most),
            "schedule gpipe: 2147483647 stages x 2147483647 micro-batches; at most 134217728 are accepted");
}

TEST(Generators, IdealBubble) {
  for (const char* name : {"gpipe", "1f1b", "eager-1f1b", "interleaved-1f1b", "looped-bfs", "zb-h1", "zb-h2", "zb-v"}) {
    EXPECT_DOUBLE_EQ(ideal_bubble(make_schedule(name, 1, 5)), 0.0);
  }
  for (const char* name : {"gpipe", "1f1b"}) {
    EXPECT_NEAR(ideal_bubble(make_schedule(name, 2, 4)), 0.2, 1e-12);
    EXPECT_NEAR(ideal_bubble(make_schedule(name, 4, 8)), 0.273, 5e-4);  // from PyTorch's own orders
    EXPECT_NEAR(ideal_bubble(make_schedule(name, 8, 16)), 0.304, 5e-4);
  }
  for (const char* name : {"zb-h1", "zb-h2"}) {  // a step of 27 and one of 55, of which 24 and 48 are work
    EXPECT_NEAR(ideal_bubble(make_schedule(name, 4, 8)), 3.0 / 27, 1e-12);
    EXPECT_NEAR(ideal_bubble(make_schedule(name, 8, 16)), 7.0 / 55, 1e-12);
    EXPECT_NEAR(ideal_bubble(make_schedule(name, 3, 1)), 4.0 / 7, 1e-12) << "F and I of three ranks in turn, and one W";
  }
}

}  // namespace
}  // namespace plumbline::schedule
