#include "runtime/schedule/check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/schedule/csv.h"
#include "runtime/schedule/generators.h"
#include "runtime/schedule/lower.h"
#include "runtime/schedule/random_schedule.h"

namespace plumbline {
namespace {

using enum ActionType;
using Texts = std::vector<std::string>;

Texts check(const std::string& csv, const std::vector<StageEdge>& edges, const CheckOptions& options = {}) {
  return violations(parse_csv(csv, "s"), edges, options);
}

TEST(Check, AcceptsWhatIsRight) {
  EXPECT_EQ(check("0F0,0B0\r\n", {}), Texts{});
  EXPECT_EQ(check("0F0,0F1,0I1,0W1,0B0\r\n", {}), Texts{}) << "halves and whole side by side";
  EXPECT_EQ(check("0F0,0F1\r\n1F0,1F1\r\n", chain_edges(2), {.forward_only = true}), Texts{});
  EXPECT_EQ(check("0F0,0SEND_F0\r\n1RECV_F0,1F0\r\n", chain_edges(2), {.forward_only = true, .lowered = true}),
            Texts{});
  EXPECT_EQ(check("0F0,1F0,1B0,0B0\r\n", chain_edges(2), {.lowered = true}), Texts{}) << "one rank: nothing to send";
}

TEST(Check, CountsOfActions) {
  EXPECT_EQ(check("0F0,0F1,0B0\r\n", {}), Texts{"0B1 is missing on rank 0"});
  EXPECT_EQ(check("0F0,0B0,0B1\r\n", {}), Texts{"0F1 is missing on rank 0"});
  EXPECT_EQ(check("0F0,0B0,0F0\r\n", {}), Texts{"rank 0, position 2 (0F0): stands a second time, first at position 0"});
  EXPECT_EQ(check("0F0,0I0\r\n", {}), Texts{"0W0 is missing on rank 0"});
  EXPECT_EQ(check("0F0,0W0\r\n", {}), Texts{"0I0 is missing on rank 0"});
  EXPECT_EQ(
      check("0F0,0B0,0W0\r\n", {}),
      Texts{"rank 0, position 1 (0B0): is a full backward, but rank 0, position 2 (0W0) is a part of the same one"});
  EXPECT_EQ(check("0F0,0B0\r\n", {}, {.forward_only = true}),
            Texts{"rank 0, position 1 (0B0): does not belong in a forward-only schedule"});
}

TEST(Check, ActionsInPlacesTheyDoNotBelong) {
  Schedule schedule = make_schedule("gpipe", 2, 1);
  schedule.ranks[0].push_back({7, F, 0});
  schedule.ranks[0].push_back({0, F, 1});
  schedule.ranks[0].push_back({1, B, 0});
  schedule.ranks[0].push_back({-1, B, 0});
  EXPECT_EQ(violations(schedule, chain_edges(2)),
            (Texts{"rank 0, position 2 (7F0): there is no stage 7; stages are 0 to 1",
                   "rank 0, position 3 (0F1): there is no micro-batch 1; they are 0 to 0",
                   "rank 0, position 4 (1B0): stage 1 is on rank 1",
                   "rank 0, position 5 (-1B0): there is no stage -1; stages are 0 to 1"}));
}

TEST(Check, OrderOnARank) {
  EXPECT_EQ(check("0B0,0F0\r\n", {}),
            Texts{"rank 0, position 0 (0B0): stands before 0F0 (position 1), which must come first"});
  EXPECT_EQ(check("0F0,0W0,0I0\r\n", {}),
            Texts{"rank 0, position 1 (0W0): stands before 0I0 (position 2), which must come first"});
  EXPECT_EQ(check("1F0,0F0,1B0,0B0\r\n", chain_edges(2)),
            Texts{"rank 0, position 0 (1F0): stands before 0F0 (position 1), which must come first"});
  EXPECT_EQ(check("0F0,1F0,0B0,1B0\r\n", chain_edges(2)),
            Texts{"rank 0, position 2 (0B0): stands before 1B0 (position 3), which must come first"});
}

TEST(Check, SendsAndReceives) {
  const CheckOptions forward{.forward_only = true};
  EXPECT_EQ(check("0F0,0SEND_F0\r\n1F0\r\n", chain_edges(2), forward),
            Texts{"rank 0, position 1 (0SEND_F0): its partner 1RECV_F0 is missing on rank 1"});
  EXPECT_EQ(check("0F0\r\n1RECV_F0,1F0\r\n", chain_edges(2), forward),
            Texts{"rank 1, position 0 (1RECV_F0): its partner 0SEND_F0 is missing on rank 0"});
  EXPECT_EQ(check("0F0\r\n1F0\r\n", chain_edges(2), {.forward_only = true, .lowered = true}),
            Texts{"0SEND_F0 on rank 0 and its partner 1RECV_F0 on rank 1 are missing"});
  EXPECT_EQ(check("0SEND_F0,0F0\r\n1F0,1RECV_F0\r\n", chain_edges(2), forward),
            (Texts{"rank 0, position 0 (0SEND_F0): stands before 0F0 (position 1), which must come first",
                   "rank 1, position 0 (1F0): stands before 1RECV_F0 (position 1), which must come first"}));
  EXPECT_EQ(check("0F0,0SEND_F0\r\n1F0\r\n", {}, forward),
            Texts{"rank 0, position 1 (0SEND_F0): has nothing to carry: no edge of stage 0 to or from another rank"});
  EXPECT_EQ(check("0F0,0SEND_F0,0RECV_B0,0B0\r\n1RECV_F0,1F0,1SEND_B0,1B0\r\n", chain_edges(2)),
            Texts{"rank 1, position 2 (1SEND_B0): stands before 1B0 (position 3), which must come first"});
  EXPECT_EQ(check("0F0,0SEND_F0,0B0,0RECV_B0\r\n1RECV_F0,1F0,1B0,1SEND_B0\r\n", chain_edges(2)),
            Texts{"rank 0, position 2 (0B0): stands before 0RECV_B0 (position 3), which must come first"});
}

TEST(Check, DeadlockIsFoundWhereAllElseHolds) {
  EXPECT_EQ(check("0F0,0B0,0F1,0B1\r\n1F0,1F1,1B0,1B1\r\n", chain_edges(2)),
            Texts{"deadlock, a cycle: rank 0, position 1 (0B0) waits for 1B0 at rank 1, position 2; "
                  "rank 1, position 1 (1F1) waits for 0F1 at rank 0, position 2"});
}

TEST(Check, RendezvousNeedsTheReceiveBufferedDoesNot) {
  // Rank 1 never uses what it is sent: nobody waits for anybody, but an unbuffered send would never complete.
  Schedule schedule = parse_csv("0F0,0SEND_F0\r\n1RECV_F0,1F0\r\n2F0\r\n", "s");
  const std::vector<StageEdge> edges = {{0, 1}, {1, 2}};
  schedule.ranks[1] = {};
  schedule.ranks[2] = {};
  EXPECT_EQ(deadlocks(schedule, edges, SendModel::Buffered), Texts{});
  EXPECT_EQ(deadlocks(schedule, edges, SendModel::Rendezvous),
            Texts{"rank 0, position 1 (0SEND_F0): never completes, since rank 1 never posts 1RECV_F0"});
}

TEST(Check, MisshapenScheduleOrEdges) {
  Schedule schedule = make_schedule("gpipe", 2, 1);
  EXPECT_EQ(violations(schedule, {{1, 0}}),
            Texts{"edge from stage 1 to stage 0: values flow from a stage to a later one, out of stages 0 to 1"});
  schedule.microbatches = 0;
  EXPECT_EQ(violations(schedule, {}), Texts{"the schedule has 0 micro-batches; at least 1 is needed"});
  EXPECT_EQ(deadlocks(schedule, {}, SendModel::Buffered),
            Texts{"the schedule has 0 micro-batches; at least 1 is needed"});
}

TEST(Check, LimitOfMessages) {
  Schedule schedule = make_schedule("gpipe", 2, 50);
  schedule.ranks[1].clear();
  const Texts found = violations(schedule, chain_edges(2), {.limit = 3});
  EXPECT_EQ(found,
            (Texts{"1F0 is missing on rank 1", "1B0 is missing on rank 1", "1F1 is missing on rank 1", "and 97 more"}));
}

TEST(Check, RequireValid) {
  Schedule schedule = make_schedule("gpipe", 2, 1);
  EXPECT_NO_THROW(require_valid(schedule, chain_edges(2)));
  schedule.ranks[1].clear();
  try {
    require_valid(schedule, chain_edges(2));
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "schedule gpipe: 1F0 is missing on rank 1 (the first of several violations)");
  }
}

TEST(Check, LoweredGeneratorsPass) {
  for (const std::string& name : schedule_names()) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (int microbatches = 1; microbatches <= 12; ++microbatches) {
        std::vector<StageEdge> edges = chain_edges(ranks);
        if (ranks > 2) edges.push_back({0, ranks - 1});
        if (ranks > 3) edges.push_back({1, 3});
        const Schedule lowered = lower(make_schedule(name, ranks, microbatches), edges);
        EXPECT_EQ(violations(lowered, edges, {.lowered = true}), Texts{})
            << name << ", " << ranks << " ranks, " << microbatches << " micro-batches";
      }
    }
  }
}

// One change to a schedule; says which in words.
std::string mutate(Schedule& schedule, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  std::size_t rank = below(schedule.ranks.size());
  while (schedule.ranks[rank].empty()) rank = below(schedule.ranks.size());
  auto& actions = schedule.ranks[rank];
  const std::size_t at = below(actions.size());
  const auto place = [&](std::size_t i) { return actions.begin() + static_cast<std::ptrdiff_t>(i); };
  const Action action = actions[at];
  const std::string what = "rank " + std::to_string(rank) + " position " + std::to_string(at) + " " + to_string(action);
  switch (below(7)) {
    case 0:
      actions.erase(place(at));
      return "drop " + what;
    case 1:
      actions.insert(place(below(actions.size() + 1)), action);
      return "duplicate " + what;
    case 2:
      std::swap(actions[at], actions[below(actions.size())]);
      return "swap with another " + what;
    case 3: {
      const std::size_t next = (at + 1) % actions.size();
      std::swap(actions[at], actions[next]);
      return "swap with the next " + what;
    }
    case 4: {
      actions.erase(place(at));
      auto& target = schedule.ranks[below(schedule.ranks.size())];
      target.insert(target.begin() + static_cast<std::ptrdiff_t>(below(target.size() + 1)), action);
      return "move to some rank " + what;
    }
    case 5:
      actions[at].microbatch = static_cast<int>(below(schedule.microbatches + 1));
      return "other micro-batch " + what;
    default:
      actions[at].type = action_types()[below(action_types().size())];
      return "other kind " + what;
  }
}

// Every really broken mutant is flagged, and none that still runs: the judge is a brute-force executor.
TEST(Check, AgreesWithTheJudgeOnMutants) {
  int broken = 0, harmless = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    std::mt19937 random(seed);
    testing::RandomPipe pipe = testing::random_pipe(random);
    if (seed % 3 == 0) {
      const int ranks = 1 + static_cast<int>(random() % 5);
      pipe = {make_schedule(schedule_names()[random() % schedule_names().size()], ranks,
                            1 + static_cast<int>(random() % 6)),
              chain_edges(ranks), false};
    }
    const bool lowered = random() % 2 == 0;
    Schedule schedule = lowered ? lower(pipe.compute, pipe.edges) : pipe.compute;
    const CheckOptions options{.forward_only = pipe.forward_only, .lowered = lowered};
    ASSERT_EQ(violations(schedule, pipe.edges, options), Texts{}) << "seed " << seed << ", before any mutation";

    std::string mutation = mutate(schedule, random);
    if (random() % 4 == 0) mutation += "; " + mutate(schedule, random);
    const bool is_lowered = lowered || has_communication(schedule);
    const bool runs = testing::runs_to_its_end(schedule, pipe.edges, pipe.forward_only, is_lowered);
    const Texts found = violations(schedule, pipe.edges, options);
    ASSERT_EQ(found.empty(), runs) << "seed " << seed << ": " << mutation
                                   << "; reported: " << (found.empty() ? "nothing" : found.front()) << "\n"
                                   << testing::show(schedule, pipe.edges);
    ++(runs ? harmless : broken);
  }
  EXPECT_GT(broken, 2000);
  EXPECT_GT(harmless, 500);
}

// Dropping or repeating any one action is always a fault, and the message names the action.
TEST(Check, EveryDropAndEveryRepetitionIsNamed) {
  const Schedule valid = lower(make_schedule("1f1b", 3, 4), chain_edges(3));
  for (std::size_t rank = 0; rank < valid.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < valid.ranks[rank].size(); ++i) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      const std::string text = to_string(valid.ranks[rank][i]);
      Schedule dropped = valid;
      dropped.ranks[rank].erase(dropped.ranks[rank].begin() + at);
      const Texts missing = violations(dropped, chain_edges(3));
      EXPECT_TRUE(std::any_of(missing.begin(), missing.end(), [&](const std::string& message) {
        return message.find(text + " is missing on rank " + std::to_string(rank)) != std::string::npos;
      })) << text;
      Schedule repeated = valid;
      repeated.ranks[rank].push_back(valid.ranks[rank][i]);
      EXPECT_EQ(violations(repeated, chain_edges(3)),
                Texts{"rank " + std::to_string(rank) + ", position " + std::to_string(valid.ranks[rank].size()) + " (" +
                      text + "): stands a second time, first at position " + std::to_string(i)});
    }
  }
}

}  // namespace
}  // namespace plumbline
