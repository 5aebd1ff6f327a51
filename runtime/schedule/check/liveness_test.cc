#include "runtime/schedule/check/liveness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/random_schedule.h"

namespace plumbline::schedule {
namespace {

using testing::schedule_of;

int peak(const std::string& row, const std::vector<int>& rank_of_stage, int microbatches) {
  return peak_live(schedule_of({row}, rank_of_stage, microbatches)).front();
}

TEST(Liveness, FromTheForwardToTheLastBackward) {
  EXPECT_EQ(peak("0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3", {0}, 4), 3);
  EXPECT_EQ(peak("0F0 0I0 0F1 0W0 0F2 0B1 0I2 0W2", {0}, 3), 2) << "the input half ends no life";
  EXPECT_EQ(peak("0F0 1F0 1B0 0F1 1F1 1B1 0B0 0B1", {0, 0}, 2), 3);
}

TEST(Liveness, OrderWithinAGroupDoesNotMatter) {
  for (const std::string group : {"0F1& 0B0", "0B0& 0F1"}) EXPECT_EQ(peak("0F0 " + group + " 0B1", {0}, 2), 2) << group;
  EXPECT_EQ(peak("0F0 0B0 0F1 0B1", {0}, 2), 1);
}

// The orders of PyTorch 2.15, and the slots that its analyze_pipeline_activation_liveness counts.
TEST(Liveness, SlotsOfPyTorchsOrders) {
  const std::vector<std::string> dualpipe_v = {
      "0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3& 3B1 3F2& 0B0 0F4& 3B2 3F3& 0B1 0F5& 3B3 3F4& 0B2 3B4 3F5& 0B3 3B5 0I4 0W4 "
      "0I5 0W5",
      "1F0 2F0 1F1 2F1 1F2 2B0 2F2& 1B0 1F3& 2B1 2F3& 1B1 1F4& 2B2 2F4& 1B2 1F5& 2B3 2F5& 1B3 2B4 1B4 2I5 1I5 2W5 "
      "1W5"};
  EXPECT_EQ(peak_live(schedule_of(dualpipe_v, {0, 1, 1, 0}, 6)), (std::vector<int>{5, 5}));
  EXPECT_EQ(peak("0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3", {0, 1, 0, 1}, 4), 5);
  EXPECT_EQ(peak("0F0 0F1 2F0 2F1 2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 2I2 2W2 2I3 2W3 0I2 0W2 0I3 0W3",
                 {0, 1, 0, 1}, 4),
            4);
}

TEST(Liveness, OnlyTheMicrobatchesOfTheRank) {
  Schedule schedule = schedule_of({"0F0 1F1 1B1 0B0", "0F1 1F0 1B0 0B1"}, {0, 1}, 2);
  schedule.rank_of_stage = {0, 1, 1, 0};
  schedule.replica_of_microbatch = {0, 1};
  EXPECT_EQ(peak_live(schedule), (std::vector<int>{2, 2}));
}

TEST(Liveness, PeaksOfGenerators) {
  EXPECT_EQ(peak_live(make_schedule("gpipe", 4, 8)), (std::vector<int>{8, 8, 8, 8}));
  EXPECT_EQ(peak_live(make_schedule("1f1b", 4, 8)), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(peak_live(make_schedule("zb-h1", 4, 8)), (std::vector<int>{4, 4, 4, 4}));
  EXPECT_EQ(peak_live(make_schedule("zb-h2", 4, 8)), (std::vector<int>{7, 7, 7, 7}));
}

/// The most of the rank's lives that include the same position; all members of a group share their positions.
int most_at_once(const std::vector<Action>& actions) {
  std::map<std::pair<int, int>, std::pair<int, int>> lives;  // by stage and micro-batch: the first and last position
  for (int i = 0; i < std::ssize(actions); ++i) {
    int first = i, last = i;
    while (first > 0 && actions[first - 1].overlaps_next) --first;
    while (actions[last].overlaps_next) ++last;
    auto& [begin, end] = lives[{actions[i].stage, actions[i].microbatch}];
    if (actions[i].type == ActionType::F) begin = first;
    if (actions[i].type == ActionType::B || actions[i].type == ActionType::W) end = last;
  }
  std::erase_if(lives, [](const auto& life) { return life.second.second == 0; });  // of receives, of whole stages
  int most = 0;
  for (int i = 0; i < std::ssize(actions); ++i)
    most = std::max(most, static_cast<int>(std::ranges::count_if(lives, [&](const auto& life) {
                      return life.second.first <= i && i <= life.second.second;
                    })));
  return most;
}

TEST(Liveness, PeaksOfRandomSchedules) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    const testing::RandomOptions everything{.groups = true, .replicas = true};
    const testing::RandomPipe pipe = testing::random_pipe(random, everything);
    if (pipe.forward_only) continue;
    const Schedule schedule = testing::random_lowered(pipe, random, everything);
    std::vector<int> expected;
    for (const auto& actions : schedule.ranks) expected.push_back(most_at_once(actions));
    ASSERT_EQ(peak_live(schedule), expected) << "seed " << seed << "\n" << testing::show(schedule, pipe.edges);
  }
}

}  // namespace
}  // namespace plumbline::schedule
