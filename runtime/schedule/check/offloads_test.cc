// OFFLOAD and RELOAD in the text form, the checks, the lowering and the count of activations.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/check/liveness.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/lowering/pytorch.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

using Texts = std::vector<std::string>;

Texts check(const std::string& csv) { return violations(parse_csv(csv, "s"), {}); }

TEST(Offloads, AreReadAndWritten) {
  const std::string csv = "0F0,0OFFLOAD0,0F1,0RELOAD0,0B0,0B1\r\n";
  const Schedule schedule = parse_csv(csv, "s");
  EXPECT_EQ(to_csv(schedule), csv);
  EXPECT_TRUE(has_offload(schedule));
  EXPECT_FALSE(has_communication(schedule));
  EXPECT_EQ(csv_format(schedule), "compute_only");
}

TEST(Offloads, WhatIsRight) {
  EXPECT_EQ(check("0F0,0OFFLOAD0,0RELOAD0,0B0\r\n"), Texts{});
  EXPECT_EQ(check("0F0,0OFFLOAD0,0RELOAD0,0I0,0W0\r\n"), Texts{});
  EXPECT_EQ(check("0F0,0I0,0OFFLOAD0,0RELOAD0,0W0\r\n"), Texts{}) << "what the weight half needs";
}

TEST(Offloads, WhatIsWrong) {
  EXPECT_EQ(check("0OFFLOAD0,0F0,0RELOAD0,0B0\r\n"),
            Texts{"rank 0, position 0 (0OFFLOAD0): there is no 0F0 before it"});
  EXPECT_EQ(check("0F0,0RELOAD0,0B0\r\n"), Texts{"rank 0, position 1 (0RELOAD0): there is no 0OFFLOAD0 before it"});
  EXPECT_EQ(check("0F0,0RELOAD0,0OFFLOAD0,0B0\r\n").front(),
            "rank 0, position 1 (0RELOAD0): there is no 0OFFLOAD0 before it");
  EXPECT_EQ(check("0F0,0OFFLOAD0,0B0\r\n"),
            Texts{"rank 0, position 2 (0B0): uses activations that 0OFFLOAD0 (position 1) moved away; 0RELOAD0 must "
                  "stand between"});
  EXPECT_EQ(check("0F0,0OFFLOAD0,0I0,0RELOAD0,0W0\r\n").size(), 1u) << "the input half needs them as well";
  EXPECT_EQ(check("0F0,0I0,0OFFLOAD0,0W0\r\n").size(), 1u);
  EXPECT_EQ(check("0F0,0B0,0OFFLOAD0,0RELOAD0\r\n"),
            Texts{"rank 0, position 2 (0OFFLOAD0): nothing is left to move: the backward ended at position 1"});
  EXPECT_EQ(check("0F0,0F1,0OFFLOAD0,0RELOAD1,0B0,0B1\r\n"),
            (Texts{"rank 0, position 3 (0RELOAD1): there is no 0OFFLOAD1 before it",
                   "rank 0, position 4 (0B0): uses activations that 0OFFLOAD0 (position 2) moved away; 0RELOAD0 must "
                   "stand between"}));
  EXPECT_EQ(check("0F0,0OFFLOAD0,0RELOAD0,0OFFLOAD0,0RELOAD0,0B0\r\n").front(),
            "rank 0, position 3 (0OFFLOAD0): stands a second time, first at position 1");
  EXPECT_EQ(violations(parse_csv("0F0,0OFFLOAD0,0RELOAD0\r\n", "s"), {}, {.forward_only = true}).front(),
            "rank 0, position 1 (0OFFLOAD0): does not belong in a forward-only schedule");
  EXPECT_EQ(violations(parse_csv("0F0,1OFFLOAD0,0B0\r\n1F0,1RELOAD0,1B0\r\n", "s"), chain_edges(2)).front(),
            "rank 0, position 1 (1OFFLOAD0): stage 1 is on rank 1");
}

// All orders of F, I, W (or F, B), OFFLOAD and RELOAD of one micro-batch, against a rule in words of letters: the pair
// stands between F and I, or between I and W.
TEST(Offloads, AllOrders) {
  int right = 0, wrong = 0;
  for (std::string order : {"FILRW", "FBLR"}) {
    std::sort(order.begin(), order.end());
    do {
      std::string csv;
      for (char letter : order) {
        const std::string kind = letter == 'L' ? "OFFLOAD" : letter == 'R' ? "RELOAD" : std::string(1, letter);
        csv += (csv.empty() ? "0" : ",0") + kind + "0";
      }
      const bool expected = order == "FLRIW" || order == "FILRW" || order == "FLRB";
      EXPECT_EQ(check(csv + "\r\n").empty(), expected) << csv;
      ++(expected ? right : wrong);
    } while (std::next_permutation(order.begin(), order.end()));
  }
  EXPECT_EQ(right, 3);
  EXPECT_EQ(wrong, 120 + 24 - 3);
}

TEST(Offloads, LoweringKeepsTheirPlaces) {
  const Schedule schedule = parse_csv("0F0,0OFFLOAD0,0F1,0RELOAD0,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n", "s");
  const Schedule lowered = lower(schedule, chain_edges(2));
  EXPECT_EQ(violations(lowered, chain_edges(2), {.lowered = true}), Texts{});
  EXPECT_EQ(to_csv(lowered),
            "0F0,0SEND_F0,0OFFLOAD0,0RECV_B0,0F1,0SEND_F1,0RELOAD0,0RECV_B1,0B0,0B1\r\n"
            "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\r\n");
  EXPECT_NE(testing::refusal([&] {
              lower_as_pytorch(schedule, chain_edges(2), {});
            }).find("position 1 (0OFFLOAD0): only F, B, I and W can be lowered"),
            std::string::npos);
}

TEST(Offloads, ActivationsThatAreAwayTakeNoSlot) {
  EXPECT_EQ(peak_live(parse_csv("0F0,0F1,0F2,0B0,0B1,0B2\r\n", "s")), std::vector<int>{3});
  EXPECT_EQ(peak_live(parse_csv("0F0,0OFFLOAD0,0F1,0OFFLOAD1,0F2,0B2,0RELOAD0,0B0,0RELOAD1,0B1\r\n", "s")),
            std::vector<int>{1});
  EXPECT_EQ(peak_live(parse_csv("0F0,0OFFLOAD0,0F1,0RELOAD0,0F2,0B0,0B1,0B2\r\n", "s")), std::vector<int>{3});
}

}  // namespace
}  // namespace plumbline::schedule
