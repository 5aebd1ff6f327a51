#include "runtime/schedule/generators.h"

#include <gtest/gtest.h>

#include <limits>

#include "runtime/error.h"
#include "runtime/schedule/check.h"
#include "runtime/schedule/csv.h"
#include "runtime/schedule/simulate.h"

namespace plumbline {
namespace {

using enum ActionType;

std::string message_of(const std::string& name, int ranks, int microbatches) {
  try {
    make_schedule(name, ranks, microbatches);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
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

// zb-h1 as PyTorch 2.15's ScheduleInterleavedZeroBubble prints it for one stage on each rank; the two were found equal
// for 1 to 8 ranks with every number of micro-batches up to 32 that it takes.
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

TEST(Generators, ShapeOfTheResult) {
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = make_schedule(name, 3, 5);
    EXPECT_EQ(schedule.name, name);
    EXPECT_EQ(schedule.stages, 3);
    EXPECT_EQ(schedule.microbatches, 5);
    EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 2}));
  }
  EXPECT_EQ(schedule_names(), (std::vector<std::string>{"gpipe", "1f1b", "zb-h1", "zb-h2"}));
}

// 1F1B told in another way: all ranks live through unit time slots; a rank does a backward whenever the gradient of its
// next micro-batch is there, else a forward when its input is there and it holds fewer than P - r activations.
std::vector<std::vector<Action>> greedy_one_f_one_b(int ranks, int microbatches) {
  std::vector<std::vector<Action>> order(ranks);
  std::vector<int> forwards(ranks), backwards(ranks);
  for (bool all_done = false; !all_done;) {
    const std::vector<int> f = forwards, b = backwards;  // as they were when the slot began
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

// Of any order with all forwards first and backwards ascending there is only one: count and compare neighbours.
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

TEST(Generators, AllAreValid) {
  for (const std::string& name : schedule_names()) {
    for (int ranks = 1; ranks <= 6; ++ranks) {
      for (int microbatches = 1; microbatches <= 13; ++microbatches) {
        EXPECT_EQ(violations(make_schedule(name, ranks, microbatches), chain_edges(ranks)), std::vector<std::string>{})
            << name << ", " << ranks << " ranks, " << microbatches << " micro-batches";
      }
    }
  }
}

// A gradient is summed in the order of the W (or B), so that all schedules give the same bits only if that is the same.
TEST(Generators, EveryStageAddsUpByAscendingMicrobatch) {
  for (const std::string& name : schedule_names()) {
    for (const auto& actions : make_schedule(name, 4, 9).ranks) {
      std::vector<int> added;
      for (const Action& action : actions) {
        if (action.type == B || action.type == W) added.push_back(action.microbatch);
      }
      EXPECT_EQ(added, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8})) << name;
    }
  }
}

TEST(Generators, RefusesInOneLine) {
  EXPECT_EQ(message_of("1b1f", 2, 2), "there is no schedule '1b1f'; known are gpipe, 1f1b, zb-h1, zb-h2");
  EXPECT_EQ(message_of("", 2, 2), "there is no schedule ''; known are gpipe, 1f1b, zb-h1, zb-h2");
  EXPECT_EQ(message_of("GPipe\n", 2, 2), "there is no schedule 'GPipe\\x0a'; known are gpipe, 1f1b, zb-h1, zb-h2");
  EXPECT_EQ(message_of("gpipe", 0, 2), "schedule gpipe: 0 ranks; at least 1 is needed");
  EXPECT_EQ(message_of("1f1b", 2, 0), "schedule 1f1b: 0 micro-batches; at least 1 is needed");
  EXPECT_EQ(message_of("1f1b", 2, -7), "schedule 1f1b: -7 micro-batches; at least 1 is needed");
  const int most = std::numeric_limits<int>::max();
  EXPECT_EQ(message_of("gpipe", most, most),
            "schedule gpipe: 2147483647 stages x 2147483647 micro-batches; at most 134217728 are accepted");
}

TEST(Generators, IdealBubble) {
  for (const std::string& name : schedule_names()) EXPECT_DOUBLE_EQ(ideal_bubble(make_schedule(name, 1, 5)), 0.0);
  for (const char* name : {"gpipe", "1f1b"}) {
    EXPECT_NEAR(ideal_bubble(make_schedule(name, 2, 4)), 0.2, 1e-12);
    EXPECT_NEAR(ideal_bubble(make_schedule(name, 4, 8)), 0.273, 5e-4);  // the figures PyTorch's own orders give
    EXPECT_NEAR(ideal_bubble(make_schedule(name, 8, 16)), 0.304, 5e-4);
  }
  for (const char* name : {"zb-h1", "zb-h2"}) {  // a step of 27 and one of 55, of which 24 and 48 are work
    EXPECT_NEAR(ideal_bubble(make_schedule(name, 4, 8)), 3.0 / 27, 1e-12);
    EXPECT_NEAR(ideal_bubble(make_schedule(name, 8, 16)), 7.0 / 55, 1e-12);
    EXPECT_NEAR(ideal_bubble(make_schedule(name, 3, 1)), 4.0 / 7, 1e-12) << "F and I of three ranks in turn, and one W";
  }
}

}  // namespace
}  // namespace plumbline
