// The same stages, placed on ranks in different ways: since each stage adds up in the same order, a run must leave the
// same bytes behind, whatever the placement of stages and whichever values cross a transport.
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/backend/engine_subject.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/judge.h"
#include "conformance/judge/rank_files.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "reference/host_results.h"
#include "runtime/testing/in_full.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::conformance {
namespace {

constexpr uint64_t kPlacementSeed = 9;

/// All forwards, then all backwards, by ascending micro-batch, whole or in halves.
schedule::Schedule placed(const std::vector<int>& rank_of_stage, int microbatches, bool halves) {
  schedule::Schedule schedule;
  schedule.stages = static_cast<int>(rank_of_stage.size());
  schedule.microbatches = microbatches;
  schedule.rank_of_stage = rank_of_stage;
  schedule.ranks.resize(1 + *std::max_element(rank_of_stage.begin(), rank_of_stage.end()));
  const auto add = [&](int stage, schedule::ActionType type, int m) {
    schedule.ranks[rank_of_stage[stage]].push_back({stage, type, m});
  };
  for (int m = 0; m < microbatches; ++m)
    for (int stage = 0; stage < schedule.stages; ++stage) add(stage, schedule::ActionType::F, m);
  for (int m = 0; m < microbatches; ++m)
    for (int stage = schedule.stages - 1; stage >= 0; --stage) {
      add(stage, halves ? schedule::ActionType::I : schedule::ActionType::B, m);
      if (halves) add(stage, schedule::ActionType::W, m);
    }
  return schedule;
}

/// The bytes of one file with what all ranks have to say.
std::string result_bytes(const reference::Case& c, const schedule::Schedule& schedule) {
  std::vector<RankResults> ranks(schedule.ranks.size());
  transport::run_thread_ranks(static_cast<int>(ranks.size()), [&](transport::Transport& transport) {
    ranks[transport.rank()] = {
        "rank " + std::to_string(transport.rank()),
        reference::to_host(run_case_on_rank(c, transport, {.schedule = schedule, .seed = kPlacementSeed}))};
  });
  return encode_tensors(merge_results(ranks));
}

TEST(Placement, EqualStagesGiveEqualBytesWhereverTheyAre) {
  size_t number = 0;
  for (const char* id : {"exact-mlp-mean", "exact-skip", "mlp", "transformer-lm", "resnet-bn-eval", "multi-io",
                         "dropout", "mlp-bf16", "uneven-mean"}) {
    const reference::Case& c = find_case(id);
    const std::string expected = result_bytes(c, placed({0, 0, 0, 0}, c.microbatches, /*halves=*/false));
    EXPECT_GT(expected.size(), 1000u) << id;
    std::vector<schedule::Schedule> schedules;
    for (const auto& rank_of_stage :
         std::vector<std::vector<int>>{{0, 1, 0, 1}, {0, 1, 1, 0}, {0, 0, 1, 2}, {1, 0, 2, 0}})
      schedules.push_back(placed(rank_of_stage, c.microbatches, /*halves=*/rank_of_stage[1] == 1));
    for (const char* name : {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "zb-v", "hanayo"})  // on 4 ranks and on 2
      schedules.push_back(schedule_over_stages({name, ""}, 4, 0, c.microbatches));
    for (const schedule::Schedule& schedule : schedules) {
      ASSERT_EQ(schedule.stages, 4);
      if (!testing::in_sample(number++, 3)) continue;  // the next case has others
      EXPECT_TRUE(result_bytes(c, schedule) == expected)
          << id << " under " << (schedule.name.empty() ? "a schedule of this test" : schedule.name) << " on "
          << schedule.ranks.size() << " ranks";
    }
  }
}

// That the comparison sees something: another order of accumulation leaves other bytes.
TEST(Placement, AnotherOrderOfAccumulationGivesOtherBytes) {
  const reference::Case& c = find_case("mlp");
  schedule::Schedule reversed = placed({0, 1, 1, 0}, c.microbatches, false);
  for (auto& rank : reversed.ranks)
    for (schedule::Action& action : rank)
      if (action.type == schedule::ActionType::B) action.microbatch = c.microbatches - 1 - action.microbatch;
  EXPECT_FALSE(result_bytes(c, reversed) == result_bytes(c, placed({0, 1, 1, 0}, c.microbatches, false)));
}

}  // namespace
}  // namespace plumbline::conformance
