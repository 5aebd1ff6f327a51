#include "runtime/schedule/check/liveness.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/random_schedule.h"
#include "runtime/testing/refusal.h"

namespace plumbline::schedule {
namespace {

using enum ActivationGranularity;
using testing::schedule_of;
using Slots = std::vector<std::vector<int>>;

Liveness live(const std::vector<std::string>& rows, const std::vector<int>& rank_of_stage, int microbatches, int rank,
              const std::vector<int>& stages, ActivationGranularity granularity = StageMicrobatch) {
  return activation_liveness(schedule_of(rows, rank_of_stage, microbatches), rank, stages, granularity);
}

std::string refusal(const std::string& row, const std::vector<int>& stages, int rank = 0, int microbatches = 1) {
  const int stages_of_row = 1 + std::max(0, *std::max_element(stages.begin(), stages.end()));
  return testing::refusal(
      [&] { live({row}, std::vector<int>(std::min(stages_of_row, 2), 0), microbatches, rank, stages); });
}

TEST(Liveness, ReusesCompletedSlots) {
  const Liveness found = live({"0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3"}, {0}, 4, 0, {0});
  EXPECT_EQ(found.slot_of, (Slots{{0, 1, 2, 0}}));
  EXPECT_EQ(found.slots, 3);
  EXPECT_EQ(found.lifetime_of[0], (std::vector<Lifetime>{{0, 3}, {1, 5}, {2, 6}, {4, 7}}));
}

TEST(Liveness, TheInputHalfEndsNoLife) {
  const Liveness found = live({"0F0 0I0 0F1 0W0 0F2 0B1 0I2 0W2"}, {0}, 3, 0, {0});
  EXPECT_EQ(found.slot_of, (Slots{{0, 1, 0}}));
  EXPECT_EQ(found.slots, 2);
}

TEST(Liveness, Granularity) {
  const std::vector<std::string> rows = {"0F0 1F0 1B0 0F1 1F1 1B1 0B0 0B1"};
  const Liveness fine = live(rows, {0, 0}, 2, 0, {0, 1}, StageMicrobatch);
  EXPECT_EQ(fine.slot_of, (Slots{{0, 1}, {1, 2}})) << "1F0 had slot 1 and gave it back before 0F1";
  EXPECT_EQ(fine.slots, 3);
  const Liveness coarse = live(rows, {0, 0}, 2, 0, {0, 1}, Microbatch);
  EXPECT_EQ(coarse.slot_of, (Slots{{0, 1}, {0, 1}}));
  EXPECT_EQ(coarse.slots, 2);
  EXPECT_EQ(coarse.lifetime_of[0], (std::vector<Lifetime>{{0, 6}, {3, 7}}));
  EXPECT_EQ(coarse.lifetime_of[1], coarse.lifetime_of[0]);
}

// An activation that begins and one that ends in one group cannot share a slot, whatever their order.
TEST(Liveness, OrderWithinAGroupDoesNotMatter) {
  for (const std::string group : {"0F1& 0B0", "0B0& 0F1"}) {
    const Liveness found = live({"0F0 " + group + " 0B1"}, {0}, 2, 0, {0});
    EXPECT_EQ(found.slot_of, (Slots{{0, 1}})) << group;
    EXPECT_EQ(found.lifetime_of[0], (std::vector<Lifetime>{{0, 2}, {1, 3}})) << group;
  }
  EXPECT_EQ(live({"0F0 0B0 0F1 0B1"}, {0}, 2, 0, {0}).slots, 1);
}

// The orders and slots of PyTorch 2.15 for DualPipeV on two ranks with 6 micro-batches.
TEST(Liveness, DualPipeV) {
  const std::vector<std::string> rows = {
      "0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3& 3B1 3F2& 0B0 0F4& 3B2 3F3& 0B1 0F5& 3B3 3F4& 0B2 3B4 3F5& 0B3 3B5 0I4 0W4 "
      "0I5 0W5",
      "1F0 2F0 1F1 2F1 1F2 2B0 2F2& 1B0 1F3& 2B1 2F3& 1B1 1F4& 2B2 2F4& 1B2 1F5& 2B3 2F5& 1B3 2B4 1B4 2I5 1I5 2W5 "
      "1W5"};
  const std::vector<int> ranks = {0, 1, 1, 0};
  const Liveness first = live(rows, ranks, 6, 0, {0, 3});
  EXPECT_EQ(first.slot_of, (Slots{{0, 1, 2, 4, 0, 1}, {3, 3, 3, 3, 3, 2}}));
  EXPECT_EQ(first.slots, 5);
  const Liveness turned = live(rows, ranks, 6, 0, {3, 0});
  EXPECT_EQ(turned.slot_of, (Slots{first.slot_of[1], first.slot_of[0]})) << "the order of the stages is no matter";
  const Liveness last = live(rows, ranks, 6, 1, {1, 2});
  EXPECT_EQ(last.slot_of, (Slots{{0, 2, 4, 0, 2, 4}, {1, 3, 1, 3, 1, 3}}));
  EXPECT_EQ(last.slots, 5);
  EXPECT_EQ(live(rows, ranks, 6, 0, {0, 3}, Microbatch).slot_of, (Slots{{0, 1, 2, 3, 0, 1}, {0, 1, 2, 3, 0, 1}}));
  EXPECT_EQ(live(rows, ranks, 6, 1, {1, 2}, Microbatch).slots, 3);
  EXPECT_EQ(peak_live(schedule_of(rows, ranks, 6)), (std::vector<int>{5, 5}));
}

// Likewise, rank 0 of PyTorch's interleaved 1F1B and zero bubble: two ranks, two stages on each, 4 micro-batches.
TEST(Liveness, SlotsOfPyTorchsInterleavedOrders) {
  const std::vector<int> ranks = {0, 1, 0, 1};
  const Liveness one_f_one_b =
      live({"0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3", ""}, ranks, 4, 0, {0, 2});
  EXPECT_EQ(one_f_one_b.slot_of, (Slots{{0, 1, 4, 2}, {2, 3, 3, 0}}));
  EXPECT_EQ(one_f_one_b.slots, 5);
  const Liveness zero_bubble =
      live({"0F0 0F1 2F0 2F1 2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 2I2 2W2 2I3 2W3 0I2 0W2 0I3 0W3", ""},
           ranks, 4, 0, {0, 2});
  EXPECT_EQ(zero_bubble.slot_of, (Slots{{0, 1, 2, 3}, {2, 3, 0, 1}}));
  EXPECT_EQ(zero_bubble.slots, 4);
}

TEST(Liveness, OnlyTheMicrobatchesOfTheRank) {
  Schedule schedule = schedule_of({"0F0 1F1 1B1 0B0", "0F1 1F0 1B0 0B1"}, {0, 1}, 2);
  schedule.rank_of_stage = {0, 1, 1, 0};
  schedule.replica_of_microbatch = {0, 1};
  EXPECT_EQ(activation_liveness(schedule, 0, {0, 1}, StageMicrobatch).slot_of, (Slots{{0, -1}, {-1, 1}}));
  EXPECT_EQ(activation_liveness(schedule, 0, {0, 1}, Microbatch).slots, 2);
  EXPECT_EQ(peak_live(schedule), (std::vector<int>{2, 2}));
}

TEST(Liveness, RefusesWhatHasNoLifetimes) {
  EXPECT_EQ(parse_granularity("microbatch"), Microbatch);
  EXPECT_EQ(parse_granularity("stage_microbatch"), StageMicrobatch);
  EXPECT_THROW(parse_granularity("stage"), InputError);
  EXPECT_THROW(live({"0F0 0B0"}, {0}, 1, 0, {}), InputError) << "no stages";
  const std::string head = "liveness of schedule s: ";
  EXPECT_EQ(refusal("0F0 0B0", {0, 0}), head + "stage 0 is given twice");
  EXPECT_EQ(refusal("0F0 0B0", {7}), head + "there is no stage 7; stages are 0 to 1");
  EXPECT_EQ(refusal("0F0 0B0", {0}, 1), head + "there is no rank 1; ranks are 0 to 0");
  EXPECT_EQ(refusal("0F0 0B0 0F1 0B1", {0}),
            head + "rank 0, position 2 (0F1): there is no such micro-batch; they are 0 to 0");
  EXPECT_EQ(refusal("0F0 0F0 0B0", {0}),
            head + "rank 0, position 1 (0F0): is a second forward of the activation, after position 0");
  EXPECT_EQ(refusal("0F0 0I0 0I0 0W0", {0}),
            head + "rank 0, position 2 (0I0): is a second input backward of the activation, after position 1");
  EXPECT_EQ(refusal("0F0 0B0 0W0", {0}),
            head + "rank 0, position 2 (0W0): is a second release of the activation, after position 1");
  EXPECT_EQ(refusal("0B0", {0}), head + "0F0 is missing on rank 0");
  EXPECT_EQ(refusal("0F0 0I0", {0}), head + "nothing ends the life of 0F0 on rank 0: neither 0B0 nor 0W0 is there");
  EXPECT_EQ(refusal("0F0 0W0", {0}), head + "rank 0, position 1 (0W0) is there without 0I0");
  EXPECT_EQ(refusal("0B0 0F0", {0}), head + "rank 0, position 0 (0B0) stands before 0F0 (position 1)");
  EXPECT_EQ(refusal("0F0 0B0", {1}), head + "1F0 is missing on rank 0") << "a stage that the rank never runs";
  Schedule nameless = schedule_of({"0F0 0B0"}, {0}, 1);
  nameless.ranks[0][1].microbatch = kNoMicrobatch;
  EXPECT_THROW(activation_liveness(nameless, 0, {0}, StageMicrobatch), InputError);
}

TEST(Liveness, PeaksOfGenerators) {
  EXPECT_EQ(peak_live(make_schedule("gpipe", 4, 8)), (std::vector<int>{8, 8, 8, 8}));
  EXPECT_EQ(peak_live(make_schedule("1f1b", 4, 8)), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(peak_live(make_schedule("zb-h1", 4, 8)), (std::vector<int>{4, 4, 4, 4}));
  EXPECT_EQ(peak_live(make_schedule("zb-h2", 4, 8)), (std::vector<int>{7, 7, 7, 7}));
}

// Compares all pairs: no two overlapping lifetimes share a slot, there are as many slots as overlap at the worst
// position, and each lifetime has the lowest slot that no earlier one in the order (begin, end, place) holds.
TEST(Liveness, SlotsAreExactOnRandomLifetimes) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    std::vector<Lifetime> lifetimes(random() % 20);
    for (Lifetime& lifetime : lifetimes) {
      lifetime.begin = static_cast<int>(random() % 15);
      lifetime.end = lifetime.begin + static_cast<int>(random() % 8);
    }
    const SlotAssignment found = assign_slots(lifetimes);
    int worst = 0;
    for (int position = 0; position < 25; ++position) {
      const auto covers = [&](const Lifetime& l) { return l.begin <= position && position <= l.end; };
      worst = std::max(worst, static_cast<int>(std::count_if(lifetimes.begin(), lifetimes.end(), covers)));
    }
    ASSERT_EQ(found.slots, worst) << "seed " << seed;
    const auto before = [&](std::size_t a, std::size_t b) {
      const Lifetime &x = lifetimes[a], &y = lifetimes[b];
      return x.begin != y.begin ? x.begin < y.begin : x.end != y.end ? x.end < y.end : a < b;
    };
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
      std::set<int> held;
      for (std::size_t j = 0; j < lifetimes.size(); ++j) {
        if (before(j, i) && lifetimes[j].end >= lifetimes[i].begin) held.insert(found.slot_of[j]);
      }
      int lowest = 0;
      while (held.contains(lowest)) ++lowest;
      ASSERT_EQ(found.slot_of[i], lowest) << "seed " << seed << ", lifetime " << i;
    }
  }
}

// Peaks by counting at every action, group by group, on random schedules with replicas.
TEST(Liveness, PeaksOfRandomSchedules) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    const testing::RandomOptions everything{.groups = true, .replicas = true};
    const testing::RandomPipe pipe = testing::random_pipe(random, everything);
    if (pipe.forward_only) continue;
    const Schedule schedule = testing::random_lowered(pipe, random, everything);
    std::vector<int> expected;
    for (const auto& actions : schedule.ranks) {
      int alive = 0, peak = 0, ended = 0;
      for (const Action& action : actions) {
        if (action.type == ActionType::F) peak = std::max(peak, ++alive);
        if (action.type == ActionType::B || action.type == ActionType::W) ++ended;
        if (action.overlaps_next) continue;
        alive -= ended;
        ended = 0;
      }
      expected.push_back(peak);
    }
    ASSERT_EQ(peak_live(schedule), expected) << "seed " << seed << "\n" << testing::show(schedule, pipe.edges);
  }
}

}  // namespace
}  // namespace plumbline::schedule
