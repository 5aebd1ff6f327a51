// Each pass on literal lists. The lists are PyTorch's where its own test has the case (TestScheduleLowering); the
// others come from calls of its private passes, version 2.15.
#include "runtime/schedule/lowering/passes.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/merge_backward.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

using testing::refusal;

Schedule read(std::string_view text) { return parse_csv(text, "s"); }

// Row 0 with these options.
std::string unshards(std::string_view text, int max_active = 3, int lookahead = 3) {
  const Schedule schedule = read(text);
  std::vector<int> lookaheads(schedule.ranks.size(), max_active);
  lookaheads[0] = lookahead;
  const std::string all = to_csv(add_unshard_reshard(schedule, max_active, lookaheads));
  return all.substr(0, all.find('\r'));
}

TEST(AddUnshardReshard, PyTorchsCases) {
  EXPECT_EQ(unshards("0F0,0F1,,0B0,0B1\n"), "0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD");
  EXPECT_EQ(unshards("0F0,0F1,1F0,1F1,1B0,1B1,0B0,0B1\n"),
            "0UNSHARD,1UNSHARD,0F0,0F1,1F0,1F1,1B0,1B1,1RESHARD,0B0,0B1,0RESHARD");
}

TEST(AddUnshardReshard, WindowsOfAllSizes) {
  const char* text = "0F0,2F0,4F0,6F0,6B0,4B0,2B0,0B0\n1F0,3F0,5F0,5B0,3B0,1B0\n";
  EXPECT_EQ(unshards(text, 1, 1),
            "0UNSHARD,0F0,0RESHARD,2UNSHARD,2F0,2RESHARD,4UNSHARD,4F0,4RESHARD,6UNSHARD,6F0,6B0,6RESHARD,4UNSHARD,4B0,"
            "4RESHARD,2UNSHARD,2B0,2RESHARD,0UNSHARD,0B0,0RESHARD");
  EXPECT_EQ(unshards(text, 2, 2),
            "0UNSHARD,2UNSHARD,0F0,0RESHARD,4UNSHARD,2F0,2RESHARD,6UNSHARD,4F0,6F0,6B0,6RESHARD,2UNSHARD,4B0,4RESHARD,"
            "0UNSHARD,2B0,2RESHARD,0B0,0RESHARD");
  EXPECT_EQ(unshards(text, 2, 1),
            "0UNSHARD,0F0,0RESHARD,2UNSHARD,2F0,2RESHARD,4UNSHARD,4F0,6UNSHARD,6F0,6B0,6RESHARD,4B0,4RESHARD,2UNSHARD,"
            "2B0,2RESHARD,0UNSHARD,0B0,0RESHARD");
  EXPECT_EQ(unshards(text, 3, 3),
            "0UNSHARD,2UNSHARD,4UNSHARD,0F0,0RESHARD,6UNSHARD,2F0,4F0,6F0,6B0,6RESHARD,0UNSHARD,4B0,4RESHARD,2B0,"
            "2RESHARD,0B0,0RESHARD");
  EXPECT_EQ(unshards(text, 3, 2),
            "0UNSHARD,2UNSHARD,0F0,0RESHARD,4UNSHARD,2F0,6UNSHARD,4F0,6F0,6B0,6RESHARD,4B0,4RESHARD,0UNSHARD,2B0,"
            "2RESHARD,0B0,0RESHARD");
  EXPECT_EQ(unshards(text, 4, 4),
            "0UNSHARD,2UNSHARD,4UNSHARD,6UNSHARD,0F0,2F0,4F0,6F0,6B0,6RESHARD,4B0,4RESHARD,2B0,2RESHARD,0B0,0RESHARD");
}

TEST(AddUnshardReshard, AGroupCountsAsAWhole) {
  const char* text =
      "0F0,0F1,2F0,4F0,(0F1;4B0)OVERLAP_F_B,(2F1;0B0)OVERLAP_F_B,(6F0;2B0)OVERLAP_F_B,6B0\n1F0,3F0,5F0\n";
  EXPECT_EQ(unshards(text, 2, 2),
            "0UNSHARD,2UNSHARD,0F0,0F1,0RESHARD,4UNSHARD,2F0,2RESHARD,0UNSHARD,4F0,(0F1;4B0)OVERLAP_F_B,4RESHARD,"
            "2UNSHARD,(2F1;0B0)OVERLAP_F_B,0RESHARD,6UNSHARD,(6F0;2B0)OVERLAP_F_B,2RESHARD,6B0,6RESHARD");
  EXPECT_EQ(unshards(text, 3, 1),
            "0UNSHARD,0F0,0F1,2UNSHARD,2F0,4UNSHARD,4F0,(0F1;4B0)OVERLAP_F_B,4RESHARD,(2F1;0B0)OVERLAP_F_B,0RESHARD,"
            "6UNSHARD,(6F0;2B0)OVERLAP_F_B,2RESHARD,6B0,6RESHARD");
  EXPECT_EQ(unshards(text, 3, 3),
            "0UNSHARD,2UNSHARD,4UNSHARD,0F0,0F1,2F0,4F0,(0F1;4B0)OVERLAP_F_B,4RESHARD,6UNSHARD,(2F1;0B0)OVERLAP_F_B,"
            "0RESHARD,(6F0;2B0)OVERLAP_F_B,2RESHARD,6B0,6RESHARD");
  EXPECT_EQ(unshards(text, 2, 1),
            "0UNSHARD,0F0,0F1,0RESHARD,2UNSHARD,2F0,2RESHARD,4UNSHARD,4F0,0UNSHARD,(0F1;4B0)OVERLAP_F_B,4RESHARD,"
            "2UNSHARD,(2F1;0B0)OVERLAP_F_B,0RESHARD,6UNSHARD,(6F0;2B0)OVERLAP_F_B,2RESHARD,6B0,6RESHARD");
  EXPECT_EQ(refusal([&] { unshards(text, 1, 1); }),
            "schedule s: rank 0, position 4: (0F1;4B0)OVERLAP_F_B needs 2 stages at once; max_active_stages is 1");
}

TEST(UnshardLookahead, FullAutoAndNumbers) {
  EXPECT_EQ(unshard_lookahead("full", 3, 4), (std::vector<int>{4, 4, 4}));
  EXPECT_EQ(unshard_lookahead("auto", 4, 4), (std::vector<int>{2, 3, 4, 4}));
  EXPECT_EQ(unshard_lookahead("auto", 2, 1), (std::vector<int>{1, 1}));
  EXPECT_EQ(unshard_lookahead("2", 3, 4), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(unshard_lookahead("2,4,1", 3, 4), (std::vector<int>{2, 4, 1}));
  EXPECT_EQ(unshard_lookahead("3", 1, 4), (std::vector<int>{3}));
  for (const char* text :
       {"", "0", "5", "-1", "2,3", "2,3,4,1", "2,3,5", "2,,3", "2,3,", ",2,3", "2 ", "2,3,4 ", "Full", "99999999999"}) {
    EXPECT_EQ(refusal([&] { unshard_lookahead(text, 3, 4); }),
              "unshard_lookahead '" + std::string(text) +
                  "'; expected full, auto, a number from 1 to 4, or one for each of 3 ranks, joined by commas");
  }
  EXPECT_EQ(refusal([] { unshard_lookahead("full", 3, 0); }), "max_active_stages is 0; at least 1 is needed");
}

TEST(AddReduceGrad, PyTorchsCases) {
  const Schedule one = read("0F0,0F1,,0B0,0B1\n");
  EXPECT_EQ(to_csv(add_reduce_grad(one, false)), "0F0,0F1,0B0,0B1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\r\n");
  EXPECT_EQ(to_csv(add_reduce_grad(one, true)), "0F0,0F1,0B0,0B1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\r\n");
  const Schedule two = read("0F0,0F1,1F0,1F1,1B0,1B1,0B0,0B1\n");
  EXPECT_EQ(to_csv(add_reduce_grad(two, false)),
            "0F0,0F1,1F0,1F1,1B0,1B1,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,0B0,0B1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\r\n");
  EXPECT_EQ(to_csv(add_reduce_grad(two, true)),
            "0F0,0F1,1F0,1F1,1B0,1B1,1REDUCE_GRAD,0B0,0B1,1WAIT_REDUCE_GRAD,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\r\n");
}

TEST(AddReduceGrad, GroupsAndHalves) {
  const Schedule schedule = read("0F0,1F0,1I0,0I0,(0F1;1W0)OVERLAP_F_B,1F1,1I1,1W1,(0I1;0W0)OVERLAP_F_B,0W1\n");
  EXPECT_EQ(to_csv(add_reduce_grad(schedule, true)),
            "0F0,1F0,1I0,0I0,(0F1;1W0)OVERLAP_F_B,1F1,1I1,1W1,1REDUCE_GRAD,(0I1;0W0)OVERLAP_F_B,0W1,"
            "1WAIT_REDUCE_GRAD,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\r\n");
  EXPECT_EQ(to_csv(add_reduce_grad(read("0F0,1F0,(1B0;0B0)OVERLAP_F_B\n"), true)),
            "0F0,1F0,(1B0;0B0)OVERLAP_F_B,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\r\n");
}

// A rank that executes one of two micro-batches of a stage reduces after that one.
TEST(AddReduceGrad, Replicas) {
  EXPECT_EQ(to_csv(add_reduce_grad(read("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n"), false)),
            "0F0,1F1,1B1,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\r\n"
            "0F1,1F0,1B0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,0B1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\r\n");
}

TEST(MergeBackwardHalves, PyTorchsCase) {
  EXPECT_EQ(to_csv(testing::merge_backward_halves(read("0F0,0F1,0F2,0I0,0I1,0W0,0I2,0W2,0W1\n"))),
            "0F0,0F1,0F2,0I0,0I1,0W0,0B2,0W1\r\n");
}

TEST(MergeBackwardHalves, OnlyNeighboursOfOneStageAndMicrobatch) {
  EXPECT_EQ(to_csv(testing::merge_backward_halves(
                read("0F0,0I0,0I1,0W1,0W0,0W2,(0I2;0W3)OVERLAP_F_B,0W2,0I4,1W4,1I5,1W6,0F3,0F5,0F6\n"))),
            "0F0,0I0,0B1,0W0,0W2,(0I2;0W3)OVERLAP_F_B,0W2,0I4,1W4,1I5,1W6,0F3,0F5,0F6\r\n");
  EXPECT_EQ(to_csv(testing::merge_backward_halves(read("0F0,0I0,,,0W0\n1F0,1I0\n2F0,2W0\n"))),
            "0F0,0B0\r\n1F0,1I0\r\n2F0,2W0\r\n")
      << "a bubble does not come between, another rank does";
  EXPECT_EQ(to_csv(testing::merge_backward_halves(read("0F0,0F1,(0I0;0I1)OVERLAP_F_B,0W1,0W0\n"))),
            "0F0,0F1,(0I0;0I1)OVERLAP_F_B,0W1,0W0\r\n");
}

TEST(AddSendReceive, PyTorchsV) {
  const Schedule schedule =
      read("0F0,0F1,3F0,3I0,3F1,3I1,0I0,3W0,0I1,3W1,0W0,0W1\n1F0,2F0,1F1,2F1,2I0,1I0,2I1,2W0,1I1,2W1,1W0,1W1\n");
  EXPECT_EQ(to_csv(add_send_receive(schedule, StageGraph(4, chain_edges(4)))),
            "0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,3F0,3I0,3SEND_B0,3RECV_F1,3F1,3I1,3SEND_B1,0RECV_B0,0I0,3W0,0RECV_B1,"
            "0I1,3W1,0W0,0W1\r\n"
            "1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1F1,2RECV_B0,2F1,2SEND_F1,2I0,2RECV_B1,1I0,1SEND_B0,2I1,2W0,1I1,"
            "1SEND_B1,2W1,1W0,1W1\r\n");
}

// PyTorch's own case has bubbles, in each of which a rank loses its turn; its default path removes them first, and our
// lists have none.
TEST(AddSendReceive, TwoStages) {
  EXPECT_EQ(to_csv(add_send_receive(read("0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n"), StageGraph(2, chain_edges(2)))),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\r\n"
            "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\r\n");
}

// Equal to PyTorch's artefact zb1p_2rank_2stagep_comms.csv, which is in the dialect of 2024.
TEST(AddSendReceive, Zb1pArtefact) {
  const Schedule compute =
      make_schedule({.name = "interleaved-zero-bubble", .ranks = 2, .microbatches = 8, .stages_per_rank = 2});
  EXPECT_EQ(to_csv(add_send_receive(testing::merge_backward_halves(compute), StageGraph(4, chain_edges(4)))),
            "0F0,0SEND_F0,2RECV_F0,0F1,0SEND_F1,2RECV_F1,2F0,2SEND_F0,2F1,2SEND_F1,2RECV_B0,2B0,2SEND_B0,0F2,"
            "0SEND_F2,2RECV_B1,2B1,2SEND_B1,0F3,0SEND_F3,2RECV_F2,0RECV_B0,0B0,2F2,2SEND_F2,2RECV_F3,0RECV_B1,"
            "0B1,2F3,2SEND_F3,2RECV_B2,2B2,2SEND_B2,0F4,0SEND_F4,2RECV_B3,2B3,2SEND_B3,0F5,0SEND_F5,2RECV_F4,"
            "0RECV_B2,0B2,2F4,2SEND_F4,2RECV_F5,0RECV_B3,0B3,2F5,2SEND_F5,2RECV_B4,2B4,2SEND_B4,0F6,0SEND_F6,"
            "2RECV_B5,2B5,2SEND_B5,0F7,0SEND_F7,2RECV_F6,0RECV_B4,0B4,2F6,2SEND_F6,2RECV_F7,0RECV_B5,0B5,2F7,"
            "2SEND_F7,2RECV_B6,2B6,2SEND_B6,2RECV_B7,2B7,2SEND_B7,0RECV_B6,0B6,0RECV_B7,0B7\r\n"
            "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,3RECV_F0,3F0,3RECV_F1,3I0,3SEND_B0,1RECV_B0,3F1,"
            "1RECV_F2,3I1,3SEND_B1,1RECV_B1,3W0,1RECV_F3,1F2,1SEND_F2,1I0,1SEND_B0,3W1,3RECV_F2,1F3,1SEND_F3,1I1,"
            "1SEND_B1,1W0,3RECV_F3,3F2,3I2,3SEND_B2,1RECV_B2,1W1,1RECV_F4,3F3,3I3,3SEND_B3,1RECV_B3,3W2,1RECV_F5,"
            "1F4,1SEND_F4,1I2,1SEND_B2,3W3,3RECV_F4,1F5,1SEND_F5,1I3,1SEND_B3,1W2,3RECV_F5,3F4,3I4,3SEND_B4,"
            "1RECV_B4,1W3,1RECV_F6,3F5,3I5,3SEND_B5,1RECV_B5,3W4,1RECV_F7,1F6,1SEND_F6,1I4,1SEND_B4,3W5,3RECV_F6,"
            "1F7,1SEND_F7,1I5,1SEND_B5,1W4,3RECV_F7,3F6,3I6,3SEND_B6,1RECV_B6,1W5,3F7,3I7,3SEND_B7,1RECV_B7,3W6,"
            "1I6,1SEND_B6,3W7,1I7,1SEND_B7,1W6,1W7\r\n");
}

const char* const kGroups =
    "0F0,0F1,3F0,(0F2;3B0)OVERLAP_F_B,(3F1;0B0)OVERLAP_F_B,3B1,3F2,3B2,0B1,0B2\n"
    "1F0,2F0,1F1,2F1,2B0,1B0,1F2,2B1,1B1,2F2,2B2,1B2\n";

TEST(AddSendReceive, Groups) {
  EXPECT_EQ(to_csv(add_send_receive(read(kGroups), StageGraph(4, chain_edges(4)))),
            "0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,3F0,(0F2;3B0)OVERLAP_F_B,0SEND_F2,3SEND_B0,3RECV_F1,0RECV_B0,"
            "(3F1;0B0)OVERLAP_F_B,3B1,3SEND_B1,0RECV_B1,3RECV_F2,3F2,3B2,3SEND_B2,0B1,0RECV_B2,0B2\r\n"
            "1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1F1,1RECV_F2,2RECV_B0,2F1,2SEND_F1,2B0,1B0,1SEND_B0,1F2,2RECV_B1,2B1,"
            "1B1,1SEND_B1,2F2,2SEND_F2,2RECV_B2,2B2,1B2,1SEND_B2\r\n");
}

// Stage 0 feeds 1 and 2, stage 2 receives from both: one RECV each, at the turn of the first sender.
TEST(AddSendReceive, SkipEdges) {
  EXPECT_EQ(to_csv(add_send_receive(read("0F0,0F1\n1F0,1F1\n2F0,2F1\n"), StageGraph(3, {{0, 1}, {1, 2}, {0, 2}}))),
            "0F0,0SEND_F0,0F1,0SEND_F1\r\n"
            "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1\r\n"
            "2RECV_F0,2F0,2RECV_F1,2F1\r\n");
}

TEST(AddSendReceive, Replicas) {
  EXPECT_EQ(to_csv(add_send_receive(read("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n"), StageGraph(2, chain_edges(2)))),
            "0F0,0SEND_F0,1RECV_F1,1F1,1B1,1SEND_B1,0RECV_B0,0B0\r\n"
            "1RECV_F0,0F1,0SEND_F1,1F0,0RECV_B1,1B0,1SEND_B0,0B1\r\n");
}

TEST(AddSendReceive, RefusesWhatComesToNoEnd) {
  const auto refused = [](std::string_view text) {
    return refusal([&] { add_send_receive(read(text), StageGraph(2, chain_edges(2))); });
  };
  EXPECT_EQ(refused("0B0,0F0\n1F0,1B0\n"), "schedule s: rank 0, position 0 (0B0) never gets what it needs");
  EXPECT_EQ(refused("0F0\n1F0,(1F1;1B0)OVERLAP_F_B\n"),
            "schedule s: rank 1, position 1 ((1F1;1B0)OVERLAP_F_B) never gets what it needs");
}

TEST(AddSendWaits, AfterTheBackwardOrAtTheEnd) {
  const StageGraph graph(4, chain_edges(4));
  EXPECT_EQ(to_csv(add_send_waits(add_send_receive(read(kGroups), graph))),
            "0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,3F0,(0F2;3B0)OVERLAP_F_B,0SEND_F2,3SEND_B0,3RECV_F1,0RECV_B0,"
            "(3F1;0B0)OVERLAP_F_B,0WAIT_SEND_F0,3B1,3SEND_B1,0RECV_B1,3RECV_F2,3F2,3B2,3SEND_B2,0B1,0WAIT_SEND_F1,"
            "0RECV_B2,0B2,0WAIT_SEND_F2,3WAIT_SEND_B0,3WAIT_SEND_B1,3WAIT_SEND_B2\r\n"
            "1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1F1,1RECV_F2,2RECV_B0,2F1,2SEND_F1,2B0,2WAIT_SEND_F0,1B0,1SEND_B0,1F2,"
            "2RECV_B1,2B1,2WAIT_SEND_F1,1B1,1SEND_B1,2F2,2SEND_F2,2RECV_B2,2B2,2WAIT_SEND_F2,1B2,1SEND_B2,"
            "1WAIT_SEND_B0,1WAIT_SEND_B1,1WAIT_SEND_B2\r\n");
  EXPECT_EQ(to_csv(add_send_waits(read("0F0,0SEND_F0,0F1,0SEND_F1\n1RECV_F0,1F0,1RECV_F1,1F1\n"))),
            "0F0,0SEND_F0,0F1,0SEND_F1,0WAIT_SEND_F0,0WAIT_SEND_F1\r\n1RECV_F0,1F0,1RECV_F1,1F1\r\n")
      << "forward only";
  EXPECT_EQ(refusal([] { add_send_waits(read("0F0,0SEND_F0,0SEND_F0\n1F0\n")); }),
            "schedule s: rank 0, position 2 (0SEND_F0): is sent already");
}

TEST(RequireSendWaits, OneForEachSendBehindIt) {
  const auto refused = [](std::string_view text) { return refusal([&] { require_send_waits(read(text)); }); };
  EXPECT_EQ(refused("0F0,0SEND_F0,0WAIT_SEND_F0\n1F0,1SEND_B0,1WAIT_SEND_B0\n"), "accepted");
  EXPECT_EQ(refused("0F0,0SEND_F0\n1F0\n"), "schedule s: rank 0, position 1 (0SEND_F0): nothing waits for it");
  EXPECT_EQ(refused("0F0,0WAIT_SEND_F0,0SEND_F0\n1F0\n"),
            "schedule s: rank 0, position 1 (0WAIT_SEND_F0): there is no such send before it");
  EXPECT_EQ(refused("0F0,0SEND_F0,0WAIT_SEND_B0\n1F0\n"),
            "schedule s: rank 0, position 2 (0WAIT_SEND_B0): there is no such send before it");
  EXPECT_EQ(refused("0F0,0SEND_F0,0WAIT_SEND_F0,0WAIT_SEND_F0\n1F0\n"),
            "schedule s: rank 0, position 3 (0WAIT_SEND_F0): was waited for already");
  EXPECT_EQ(refused("0F0,0SEND_F0,0WAIT_SEND_F0,0SEND_F0\n1F0\n"),
            "schedule s: rank 0, position 3 (0SEND_F0): is sent already");
}

std::string deferred(std::string_view text, int stages) {
  return to_csv(defer_receives(read(text), StageGraph(stages, chain_edges(stages))));
}

TEST(DeferReceives, PyTorchsCases) {
  EXPECT_EQ(deferred("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                     "1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n",
                     2),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\r\n"
            "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\r\n");
  const std::string rank_0 =
      "0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,3F0,3I0,3SEND_B0,3RECV_F1,3F1,3I1,3SEND_B1,0RECV_B0,0I0,3W0,0RECV_B1,0I1,3W1,"
      "0W0,0W1\r\n";
  EXPECT_EQ(deferred(rank_0 + "1RECV_F0,1RECV_F1,1F0,2F0,2SEND_F0,1F1,2RECV_B0,2F1,2SEND_F1,2I0,2RECV_B1,1I0,1SEND_B0,"
                              "2I1,1I1,1SEND_B1,2W0,2W1,1W0,1W1\n",
                     4),
            rank_0 +
                "1RECV_F0,1F0,2F0,2SEND_F0,1RECV_F1,1F1,2F1,2SEND_F1,2RECV_B0,2I0,1I0,1SEND_B0,2RECV_B1,2I1,1I1,"
                "1SEND_B1,2W0,2W1,1W0,1W1\r\n");
  EXPECT_EQ(deferred("0RECV_B0,0F0,0SEND_F0,0F1,0SEND_F1,0I0,0W0,0RECV_B1,0I1,0W1\n"
                     "1RECV_F0,1RECV_F1,1F0,1I0,1SEND_B0,1W0,1F1,1I1,1SEND_B1,1W1\n",
                     2),
            "0F0,0RECV_B0,0SEND_F0,0F1,0SEND_F1,0I0,0W0,0RECV_B1,0I1,0W1\r\n"
            "1RECV_F0,1F0,1I0,1SEND_B0,1W0,1RECV_F1,1F1,1I1,1SEND_B1,1W1\r\n");
  EXPECT_EQ(
      deferred(rank_0 + "1RECV_F0,1RECV_F1,2RECV_B0,1F0,2F0,2SEND_F0,(1F1;2B0)OVERLAP_F_B,2W0,1B0,1SEND_B0,1W0\n", 4),
      rank_0 + "1RECV_F0,1F0,2F0,2SEND_F0,1RECV_F1,2RECV_B0,(1F1;2B0)OVERLAP_F_B,2W0,1B0,1SEND_B0,1W0\r\n");
}

// pytorch#172668: on the lower of two ranks a receive must move, but not past a send to the same peer.
TEST(DeferReceives, LowerRankReceivesBeforeItSends) {
  EXPECT_EQ(deferred("0F0,0SEND_F0,2RECV_F0,0F1,0SEND_F1,2RECV_F1,2F0,2SEND_F0,2F1,2SEND_F1,2RECV_B0,2B0,2SEND_B0,"
                     "2RECV_B1,2B1,2SEND_B1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                     "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,3RECV_F0,3F0,3RECV_F1,3B0,3SEND_B0,1RECV_B0,3F1,3B1,"
                     "3SEND_B1,1RECV_B1,1B0,1SEND_B0,1B1,1SEND_B1\n",
                     4),
            "0F0,0SEND_F0,0F1,2RECV_F0,0SEND_F1,2F0,2RECV_F1,2SEND_F0,2F1,2SEND_F1,2RECV_B0,2B0,2SEND_B0,2RECV_B1,2B1,"
            "2SEND_B1,0RECV_B0,0B0,0RECV_B1,0B1\r\n"
            "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,3RECV_F0,3F0,3B0,3SEND_B0,3RECV_F1,3F1,3B1,3SEND_B1,1RECV_B0,"
            "1B0,1SEND_B0,1RECV_B1,1B1,1SEND_B1\r\n");
  EXPECT_EQ(refusal([] { deferred("0F0,0SEND_F0\n1F0,1RECV_F0\n", 2); }),
            "schedule s: rank 1: nothing after it uses 1RECV_F0");
}

std::string limited(std::string_view text, int stages, int most) {
  const StageGraph graph(stages, chain_edges(stages));
  return to_csv(limit_outstanding_sends(add_send_waits(add_send_receive(read(text), graph)), graph, most));
}

TEST(LimitOutstandingSends, MovesWaitsUp) {
  const char* text = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  EXPECT_EQ(limited(text, 2, 1),
            "0F0,0SEND_F0,0F1,0WAIT_SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0WAIT_SEND_F1\r\n"
            "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1WAIT_SEND_B0,1SEND_B1,1WAIT_SEND_B1\r\n");
  EXPECT_EQ(limited(text, 2, 2),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0WAIT_SEND_F0,0RECV_B1,0B1,0WAIT_SEND_F1\r\n"
            "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1WAIT_SEND_B0,1WAIT_SEND_B1\r\n");
  EXPECT_EQ(refusal([&] { limited(text, 2, 0); }),
            "schedule s: rank 0: max_outstanding_sends of 0 cannot be kept before 0SEND_F0");
  EXPECT_EQ(refusal([&] { limited(text, 2, -1); }), "max_outstanding_sends is -1; at least 0 is needed");
}

TEST(LimitOutstandingSends, Groups) {
  EXPECT_EQ(limited(kGroups, 4, 1),
            "0F0,0SEND_F0,0F1,0WAIT_SEND_F0,0SEND_F1,3RECV_F0,3F0,(0F2;3B0)OVERLAP_F_B,0WAIT_SEND_F1,0SEND_F2,"
            "0WAIT_SEND_F2,3SEND_B0,3RECV_F1,0RECV_B0,(3F1;0B0)OVERLAP_F_B,3B1,3WAIT_SEND_B0,3SEND_B1,0RECV_B1,"
            "3RECV_F2,3F2,3B2,3WAIT_SEND_B1,3SEND_B2,0B1,0RECV_B2,0B2,3WAIT_SEND_B2\r\n"
            "1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1F1,1RECV_F2,2RECV_B0,2F1,2WAIT_SEND_F0,2SEND_F1,2B0,1B0,2WAIT_SEND_F1,"
            "1SEND_B0,1F2,2RECV_B1,2B1,1B1,1WAIT_SEND_B0,1SEND_B1,2F2,1WAIT_SEND_B1,2SEND_F2,2RECV_B2,2B2,"
            "2WAIT_SEND_F2,1B2,1SEND_B2,1WAIT_SEND_B2\r\n");
}

TEST(LimitOutstandingSends, RefusesWhatWouldDeadlock) {
  const StageGraph graph(2, chain_edges(2));
  // Each rank sends twice before it posts a receive.
  const Schedule crossing = read(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0WAIT_SEND_F0,0WAIT_SEND_F1\n"
      "1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F0,1RECV_F1,1WAIT_SEND_B0,1WAIT_SEND_B1\n");
  EXPECT_EQ(to_csv(limit_outstanding_sends(crossing, graph, 2)), to_csv(crossing));
  EXPECT_EQ(refusal([&] { limit_outstanding_sends(crossing, graph, 1); }),
            "schedule s: rank 1: max_outstanding_sends of 1 cannot be kept before 1SEND_B1; none of 1SEND_B0 can be "
            "waited for before it");
  EXPECT_EQ(refusal([&] { limit_outstanding_sends(read("0F0,0SEND_F0,0WAIT_SEND_F0\n1F0\n"), graph, 1); }),
            "schedule s: 0SEND_F0 has no 1RECV_F0");
  EXPECT_EQ(refusal([&] {
              limit_outstanding_sends(
                  read("0F0,0SEND_F0,0WAIT_SEND_F0,0RECV_B0\n1F0,1SEND_B0,1WAIT_SEND_B0,1RECV_F0\n"), graph, 1);
            }),
            "schedule s: its sends, receives and waits form a cycle");
}

TEST(Lowering, PassesRefuseWhatIsOutOfPlace) {
  Schedule schedule = read("0F0,0B0\n1F0,1B0\n");
  schedule.ranks[0][1].stage = 1;
  EXPECT_EQ(refusal([&] { add_send_receive(schedule, StageGraph(2, chain_edges(2))); }),
            "schedule s: rank 0, position 1 (1B0): micro-batch 0 of stage 1 is on rank 1");
  schedule.ranks[0][1].stage = 7;
  EXPECT_EQ(refusal([&] { add_send_waits(schedule); }),
            "schedule s: rank 0, position 1 (7B0): there are stages 0 to 1");
  schedule.ranks[0][1] = {0, ActionType::B, 3};
  EXPECT_EQ(refusal([&] { add_reduce_grad(schedule, true); }),
            "schedule s: rank 0, position 1 (0B3): there are micro-batches 0 to 0");
}

}  // namespace
}  // namespace plumbline::schedule
