#include "runtime/schedule/check/check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/random_schedule.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;
using testing::schedule_of;
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
      violations(schedule_of({"0F0 0B0 0W0"}, {0}, 1), {}),
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
  // Rank 1 never uses the data sent to it: no rank waits for another, but an unbuffered send would never complete.
  const Schedule schedule = schedule_of({"0F0 0SEND_F0 0F1 0SEND_F1", "", ""}, {0, 1, 2}, 2);
  const std::vector<StageEdge> edges = {{0, 1}, {1, 2}};
  const std::string first = "rank 0, position 1 (0SEND_F0): never completes, since rank 1 never posts 1RECV_F0";
  const std::string second = "rank 0, position 3 (0SEND_F1): never completes, since rank 1 never posts 1RECV_F1";
  EXPECT_EQ(deadlocks(schedule, edges, {.buffers = SendModel::kUnlimited}), Texts{});
  EXPECT_EQ(deadlocks(schedule, edges, {}), (Texts{first, second}));
  EXPECT_EQ(deadlocks(schedule, edges, {.buffers = 1}), Texts{second});
  EXPECT_EQ(deadlocks(schedule, edges, {.buffers = 2}), Texts{});
  EXPECT_EQ(deadlocks(schedule, edges, {.buffers = 0, .blocking = true}),
            Texts{"deadlock: rank 0, position 1 (0SEND_F0) waits until rank 1 posts 1RECV_F0, which it never does"});
}

TEST(Check, MisshapenScheduleOrEdges) {
  Schedule schedule = make_schedule("gpipe", 2, 1);
  EXPECT_EQ(violations(schedule, {{1, 0}}),
            Texts{"edge from stage 1 to stage 0: values flow from a stage to a later one, out of stages 0 to 1"});
  schedule.microbatches = 0;
  EXPECT_EQ(violations(schedule, {}), Texts{"the schedule has 0 micro-batches; at least 1 is needed"});
  EXPECT_EQ(deadlocks(schedule, {}, {}), Texts{"the schedule has 0 micro-batches; at least 1 is needed"});
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
  EXPECT_EQ(testing::refusal([&] { require_valid(schedule, chain_edges(2)); }),
            "schedule gpipe: 1F0 is missing on rank 1 (the first of several violations)");
}

TEST(Check, LoweredGeneratorsPass) {
  for (const std::string name : {"gpipe", "1f1b", "zb-h1", "zb-h2"}) {
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

const std::vector<int> kOnePerRank = {0, 1};

Texts check_rows(const std::vector<std::string>& rows, const std::vector<int>& rank_of_stage, int microbatches,
                 const CheckOptions& options = {}) {
  const int stages = static_cast<int>(rank_of_stage.size());
  return violations(schedule_of(rows, rank_of_stage, microbatches), chain_edges(stages), options);
}

TEST(Check, MembersOfAGroupNeedOthersButNotOneAnother) {
  EXPECT_EQ(check_rows({"0F0 0F1& 0B0 0B1"}, {0}, 2), Texts{});
  EXPECT_EQ(check_rows({"0F0& 0B0"}, {0}, 1),
            Texts{"rank 0, position 1 (0B0): is in one group with 0F0 (position 0), which must come first"});
  EXPECT_EQ(check_rows({"0F0 0I0& 0W0"}, {0}, 1),
            Texts{"rank 0, position 2 (0W0): is in one group with 0I0 (position 1), which must come first"});
  EXPECT_EQ(check_rows({"1F0& 0F0 1B0 0B0"}, {0, 0}, 1),
            Texts{"rank 0, position 0 (1F0): is in one group with 0F0 (position 1), which must come first"});
  EXPECT_EQ(check_rows({"0F0 1F0& 1F1 0F1 1B0 1B1 0B0 0B1"}, {0, 0}, 2),
            Texts{"rank 0, position 2 (1F1): stands before 0F1 (position 3), which must come first"});
}

TEST(Check, MalformedGroups) {
  EXPECT_EQ(check_rows({"0F0 0B0&"}, {0}, 1),
            Texts{"rank 0, position 1 (0B0): its group reaches past the end of the list"});
  EXPECT_EQ(check_rows({"0F0& 0SEND_F0", "1RECV_F0 1F0"}, kOnePerRank, 1, {.forward_only = true}),
            (Texts{"rank 0, position 1 (0SEND_F0): is in one group with 0F0 (position 0), which must come first",
                   "rank 0, position 1 (0SEND_F0): is in a group, whose members must be F, B, I or W"}));
  EXPECT_EQ(check_rows({"0UNSHARD& 0F0 0RESHARD"}, {0}, 1, {.forward_only = true}),
            Texts{"rank 0, position 0 (0UNSHARD): is in a group, whose members must be F, B, I or W"});
}

// Each rank's order is valid by itself and, without the groups, for both together.
TEST(Check, GroupsOfTwoRanksThatWaitForOneAnother) {
  EXPECT_EQ(check_rows({"0F0 0F1& 0B0 0B1", "1F0& 1F1 1B0 1B1"}, kOnePerRank, 2),
            Texts{"deadlock, a cycle: rank 0, position 2 (0B0) waits for 1B0 at rank 1, position 2; "
                  "rank 1, position 1 (1F1) waits for 0F1 at rank 0, position 1"});
  EXPECT_EQ(check_rows({"0F0 0F1 0B0 0B1", "1F0& 1F1 1B0 1B1"}, kOnePerRank, 2), Texts{});
  EXPECT_EQ(check_rows({"0F0 0F1& 0B0 0B1", "1F0 1B0 1F1 1B1"}, kOnePerRank, 2), Texts{});
}

TEST(Check, EachMicrobatchInItsReplica) {
  // Two ranks, two replicas in opposite directions: micro-batch 1 begins on rank 1.
  Schedule schedule = schedule_of({"0F0 1F1 1B1 0B0", "0F1 1F0 1B0 0B1"}, {0, 1}, 2);
  schedule.rank_of_stage = {0, 1, 1, 0};
  schedule.replica_of_microbatch = {0, 1};
  EXPECT_EQ(violations(schedule, chain_edges(2)), Texts{});
  std::swap(schedule.replica_of_microbatch[0], schedule.replica_of_microbatch[1]);
  const Texts found = violations(schedule, chain_edges(2));
  ASSERT_EQ(found.size(), 16u) << "every action is on the wrong rank, and missing on the right one";
  EXPECT_EQ(found[0], "rank 0, position 0 (0F0): stage 0 is on rank 1");
}

TEST(Check, WaitsForSends) {
  const CheckOptions forward{.forward_only = true};
  EXPECT_EQ(check_rows({"0F0 0SEND_F0 0WAIT_SEND_F0", "1RECV_F0 1F0"}, kOnePerRank, 1, forward), Texts{});
  EXPECT_EQ(check_rows({"0F0 0WAIT_SEND_F0 0SEND_F0", "1RECV_F0 1F0"}, kOnePerRank, 1, forward),
            Texts{"rank 0, position 1 (0WAIT_SEND_F0): stands before 0SEND_F0 (position 2), which must come first"});
  EXPECT_EQ(check_rows({"0F0 0SEND_F0 0WAIT_SEND_F0 0WAIT_SEND_F0", "1RECV_F0 1F0"}, kOnePerRank, 1, forward),
            Texts{"rank 0, position 3 (0WAIT_SEND_F0): stands a second time, first at position 2"});
  EXPECT_EQ(check_rows({"0F0 0SEND_F0", "1RECV_F0 1F0 1WAIT_SEND_F0"}, kOnePerRank, 1, forward),
            Texts{"rank 1, position 2 (1WAIT_SEND_F0): there is no 1SEND_F0 to wait for"});
  EXPECT_EQ(check_rows({"0F0 0SEND_F0 0WAIT_SEND_B0", "1RECV_F0 1F0"}, kOnePerRank, 1, forward),
            Texts{"rank 0, position 2 (0WAIT_SEND_B0): does not belong in a forward-only schedule"});
}

TEST(Check, AWaitStandsStillUntilTheReceiveIsPosted) {
  const std::vector<std::string> rows = {"0F0 0SEND_F0 0WAIT_SEND_F0 0F1 0SEND_F1", "1RECV_F1 1F1 1RECV_F0 1F0"};
  const Schedule schedule = schedule_of(rows, kOnePerRank, 2);
  const Texts cycle = {
      "deadlock, a cycle: rank 0, position 2 (0WAIT_SEND_F0) waits until rank 1 posts 1RECV_F0 at position 2; "
      "rank 1, position 1 (1F1) waits for 0SEND_F1 at rank 0, position 4"};
  EXPECT_EQ(violations(schedule, chain_edges(2), {.forward_only = true}), cycle);
  EXPECT_EQ(deadlocks(schedule, chain_edges(2), {.buffers = 1}), Texts{});
  const CheckOptions buffered{.forward_only = true, .sends = {.buffers = 1}};
  EXPECT_EQ(violations(schedule, chain_edges(2), buffered), Texts{});
}

TEST(Check, WindowsOfUnshardedStages) {
  EXPECT_EQ(check_rows({"0UNSHARD 0F0 0RESHARD 0UNSHARD 0B0 0RESHARD"}, {0}, 1), Texts{});
  EXPECT_EQ(check_rows({"0UNSHARD 0RESHARD 0UNSHARD 0F0 1F0 1B0 0B0 0RESHARD"}, {0, 0}, 1), Texts{})
      << "stage 1 is never divided; a window may stay empty";
  EXPECT_EQ(check_rows({"0F0 0UNSHARD 0B0 0RESHARD"}, {0}, 1),
            Texts{"rank 0, position 0 (0F0): the stage is not unsharded here"});
  EXPECT_EQ(check_rows({"0UNSHARD 0F0 0UNSHARD 0B0 0RESHARD"}, {0}, 1),
            Texts{"rank 0, position 2 (0UNSHARD): the stage is unsharded already, at position 0"});
  EXPECT_EQ(check_rows({"0UNSHARD 0F0 0B0 0RESHARD 0RESHARD"}, {0}, 1),
            Texts{"rank 0, position 4 (0RESHARD): the stage is not unsharded here"});
  EXPECT_EQ(check_rows({"0UNSHARD 0F0 0B0"}, {0}, 1),
            Texts{"rank 0, position 0 (0UNSHARD): is never followed by a RESHARD of stage 0"});
  EXPECT_EQ(check_rows({"0F0 0B0 1UNSHARD 1RESHARD", "1F0 1B0"}, kOnePerRank, 1),
            (Texts{"rank 0, position 2 (1UNSHARD): this rank does not hold stage 1",
                   "rank 0, position 3 (1RESHARD): this rank does not hold stage 1"}));
  EXPECT_EQ(check_rows({"0F0 0B0 3UNSHARD"}, {0}, 1),
            Texts{"rank 0, position 2 (3UNSHARD): there is no stage 3; stages are 0 to 0"});
}

TEST(Check, SumsOfGradients) {
  EXPECT_EQ(check_rows({"0F0 0I0 0F1 0B1 0W0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD"}, {0}, 2), Texts{});
  EXPECT_EQ(check_rows({"0F0 0B0 0REDUCE_GRAD"}, {0}, 1), Texts{}) << "older PyTorch has no wait";
  EXPECT_EQ(check_rows({"0F0 0I0 0REDUCE_GRAD 0W0"}, {0}, 1),
            Texts{"rank 0, position 3 (0W0): adds to the stage's gradient after its REDUCE_GRAD at position 2"});
  EXPECT_EQ(check_rows({"0F0 0B0 0REDUCE_GRAD 0REDUCE_GRAD"}, {0}, 1),
            Texts{"rank 0, position 3 (0REDUCE_GRAD): stands a second time, first at position 2"});
  EXPECT_EQ(check_rows({"0F0 0B0 0WAIT_REDUCE_GRAD 0REDUCE_GRAD"}, {0}, 1),
            Texts{"rank 0, position 2 (0WAIT_REDUCE_GRAD): there is no REDUCE_GRAD of the stage before it"});
  EXPECT_EQ(check_rows({"0F0 0REDUCE_GRAD"}, {0}, 1, {.forward_only = true}),
            Texts{"rank 0, position 1 (0REDUCE_GRAD): does not belong in a forward-only schedule"});
}

// Both ranks send before they post the receive of the other's message: the classic deadlock.
TEST(Check, BlockingSendsOfTwoRanksToOneAnother) {
  const Schedule schedule = schedule_of(
      {"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1", "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"},
      kOnePerRank, 2);
  const auto edges = chain_edges(2);
  EXPECT_EQ(violations(schedule, edges), Texts{});
  EXPECT_EQ(deadlocks(schedule, edges, {.buffers = 0, .blocking = true}),
            Texts{"deadlock, a cycle: rank 0, position 3 (0SEND_F1) waits until rank 1 posts 1RECV_F1 at position 4; "
                  "rank 1, position 3 (1SEND_B0) waits until rank 0 posts 0RECV_B0 at position 4"});
  EXPECT_EQ(fewest_buffers(schedule, edges, 8), 1);
  EXPECT_EQ(fewest_buffers(schedule, edges, 0), std::nullopt);
}

// Rank 1 receives the last micro-batch first: all the others must occupy buffers until then.
TEST(Check, AsManyBuffersAsMessagesAreOvertaken) {
  const Schedule schedule = schedule_of(
      {"0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0F3 0SEND_F3", "1RECV_F3 1F3 1RECV_F2 1F2 1RECV_F1 1F1 1RECV_F0 1F0"},
      kOnePerRank, 4);
  for (int buffers = 0; buffers < 5; ++buffers) {
    EXPECT_EQ(deadlocks(schedule, chain_edges(2), {.buffers = buffers, .blocking = true}).empty(), buffers >= 3);
  }
  EXPECT_EQ(fewest_buffers(schedule, chain_edges(2), 4), 3);
  EXPECT_EQ(fewest_buffers(schedule, chain_edges(2), 2), std::nullopt);
}

// One SEND to two ranks begins both transfers: rank 1 gets its data while rank 0 still waits for rank 2.
TEST(Check, ABlockingSendServesWhoeverIsReady) {
  const std::vector<StageEdge> edges = {{0, 1}, {0, 2}, {1, 2}};
  const Schedule schedule = schedule_of({"0F0 0SEND_F0", "1RECV_F0 1F0 1SEND_F0", "2RECV_F0 2F0"}, {0, 1, 2}, 1);
  EXPECT_EQ(fewest_buffers(schedule, edges, 1), 0);
}

TEST(Check, OrderOnAChannel) {
  const auto order = [](const std::vector<std::string>& rows, const std::vector<int>& ranks, int microbatches) {
    return channel_order_violations(schedule_of(rows, ranks, microbatches),
                                    chain_edges(static_cast<int>(ranks.size())));
  };
  EXPECT_EQ(order({"0F0 0SEND_F0 0F1 0SEND_F1", "1RECV_F0 1RECV_F1 1F0 1F1"}, kOnePerRank, 2), Texts{});
  EXPECT_EQ(order({"0F0 0SEND_F0 0F1 0SEND_F1", "1RECV_F1 1RECV_F0 1F0 1F1"}, kOnePerRank, 2),
            Texts{"channel from rank 0 to rank 1, message 0: rank 0, position 1 (0SEND_F0) meets rank 1, position 0 "
                  "(1RECV_F1)"});
  EXPECT_EQ(order({"0F0 0SEND_F0 0F1 0SEND_F1", "1RECV_F0 1F0"}, kOnePerRank, 2),
            Texts{"channel from rank 0 to rank 1, message 1: rank 0, position 3 (0SEND_F1) meets no receive"});
  EXPECT_EQ(order({"0F0", "1RECV_F0 1F0"}, kOnePerRank, 1),
            Texts{"channel from rank 0 to rank 1, message 0: no send meets rank 1, position 0 (1RECV_F0)"});
}

// Stages 0 and 2 on rank 0, 1 on rank 1: the forward sends of stage 0 and the backward sends of stage 2 share a
// channel.
TEST(Check, ForwardAndBackwardShareAChannel) {
  const std::string rank_0 = "0F0 0SEND_F0 2RECV_F0 2F0 2B0 2SEND_B0 0F1 0SEND_F1 0RECV_B0 0B0";
  Schedule schedule = schedule_of({rank_0, "1RECV_F0 1F0 1SEND_F0 1RECV_B0 1RECV_F1 1B0 1SEND_B0"}, {0, 1, 0}, 2);
  EXPECT_EQ(channel_order_violations(schedule, chain_edges(3)), Texts{});
  std::swap(schedule.ranks[1][3], schedule.ranks[1][4]);
  EXPECT_EQ(channel_order_violations(schedule, chain_edges(3)),
            Texts{"channel from rank 0 to rank 1, message 1: rank 0, position 5 (2SEND_B0) meets rank 1, position 3 "
                  "(1RECV_F1)"});
}

// The cases of PyTorch's TestValidateSchedule: two schedules that pass, a rank without its list, an action left out.
TEST(Check, PyTorchsValidatorRows) {
  EXPECT_EQ(check_rows({"0F0 0B0", "1F0 1B0"}, kOnePerRank, 1), Texts{});
  EXPECT_EQ(check_rows({"0F0 0I0 0W0", "1F0 1I0 1W0"}, kOnePerRank, 1), Texts{});
  EXPECT_EQ(check_rows({"0F0 0B0"}, kOnePerRank, 1), Texts{"stage 1 is on rank 1; there are 1 ranks"});
  EXPECT_EQ(check_rows({"0F0", "1F0 1B0"}, kOnePerRank, 1), Texts{"0B0 is missing on rank 0"});
}

}  // namespace
}  // namespace plumbline::schedule
