// Random changes of one value, message or action: none is missed, and a seed repeats its fault.
#include "conformance/mutants/random_fault.h"
#include "runtime/testing/in_full.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace plumbline::conformance {
namespace {

std::vector<RunId> some_runs() {
  return {{"exact-mlp-sum", "1f1b", 2},
          {"exact-tied", "zb-v", 2},
          {"exact-skip", "interleaved-1f1b", 2},
          {"multi-io", "zb-h1", 2},
          {"mlp", "gpipe", 4},
          {"exact-accumulate", "gpipe", 2},
          {"transformer-bounded", "1f1b", 2},
          {"exact-frozen", "dualpipe-v", 2},
          {"exact-hooks-after", "zb-h1", 2}};
}

/// Replicas that sum and gather, and optimizers with state, momentum, clipping and a parameter of two ranks.
std::vector<RunId> runs_of_replicas_and_updates() {
  return {
      {"exact-dp-mlp", "zb-h1", 4},       {"exact-dp-sharded", "1f1b", 4}, {"exact-dp-sharded-momentum", "gpipe", 4},
      {"dp-clip", "interleaved-1f1b", 4}, {"train-mlp", "gpipe", 2},       {"exact-resume-momentum", "1f1b", 2},
      {"clip-shared", "gpipe", 2}};
}

TEST(RandomFaults, NoneIsMissed) {
  at::set_num_threads(1);
  FaultRunner runner(1);
  RandomFaults faults(some_runs(), runner);
  std::vector<RandomFault> all;
  const uint64_t seeds = testing::in_full_or_sample(60, 20);
  for (uint64_t seed = 100; seed < 100 + seeds; ++seed) {
    all.push_back(faults.put_in(seed));
    const RandomFault& fault = all.back();
    EXPECT_NE(fault.end, FaultEnd::Missed)
        << "seed " << seed << ": " << fault.what << " in " << to_string(fault.run) << ": " << fault.why;
    if (fault.end == FaultEnd::Caught) {
      EXPECT_NE(fault.status, Status::Pass);
    }
  }
  const auto caught = std::count_if(all.begin(), all.end(), [](const auto& f) { return f.end == FaultEnd::Caught; });
  EXPECT_GT(2 * caught, static_cast<int64_t>(seeds)) << summary(all);
}

/// Every place of a fault is drawn, and at each one some fault is caught. A sample begins with seeds that draw the rare
/// places, and ends when every place was caught.
TEST(RandomFaults, NoneIsMissedBetweenReplicasAndInUpdates) {
  at::set_num_threads(1);
  FaultRunner runner(1);
  RandomFaults faults(runs_of_replicas_and_updates(), runner);
  std::map<std::string, int> caught_at = {{"a message about a parameter of several ranks", 0},
                                          {"an action", 0},
                                          {"a gradient that the optimizer reads", 0},
                                          {"a tensor of the optimizer's state", 0},
                                          {"a parameter after its update", 0},
                                          {"an optimizer step", 0}};
  const auto all_caught = [&] { return std::ranges::all_of(caught_at, [](const auto& at) { return at.second > 0; }); };
  std::vector<uint64_t> seeds(100);
  std::iota(seeds.begin(), seeds.end(), 500);
  const std::set<uint64_t> rare = {500, 520, 521};
  std::ranges::stable_partition(seeds, [&](uint64_t seed) { return rare.contains(seed); });
  for (const uint64_t seed : seeds) {
    if (!testing::in_full() && all_caught()) break;
    const RandomFault fault = faults.put_in(seed);
    EXPECT_NE(fault.end, FaultEnd::Missed)
        << "seed " << seed << ": " << fault.what << " in " << to_string(fault.run) << ": " << fault.why;
    for (auto& [place, count] : caught_at)
      if (fault.end == FaultEnd::Caught && fault.what.find(place + " of rank") != std::string::npos) ++count;
  }
  for (const auto& [place, count] : caught_at) EXPECT_GT(count, 0) << place;
}

TEST(RandomFaults, ASeedRepeatsItsFault) {
  at::set_num_threads(1);
  FaultRunner runner(1);
  for (uint64_t seed : {7, 8, 9}) {
    RandomFaults one(some_runs(), runner), other(some_runs(), runner);
    const RandomFault first = one.put_in(seed), again = other.put_in(seed);
    EXPECT_EQ(first.what, again.what);
    EXPECT_EQ(first.run, again.run);
    EXPECT_EQ(first.end, again.end);
    EXPECT_EQ(first.why, again.why);
  }
}

TEST(RandomFaults, TheSummaryCounts) {
  std::vector<RandomFault> faults(4);
  faults[0].end = FaultEnd::Caught;
  faults[0].status = Status::Fail;
  faults[1].end = FaultEnd::NoEffect;
  faults[2].end = FaultEnd::Allowed;
  faults[2].why = "only the sign of zeros differs";
  EXPECT_EQ(summary(faults),
            "4 faults: 1 caught (1 by fail), 1 without effect (every result bitwise equal), 1 allowed "
            "(only the sign of zeros differs), 1 missed\n");
}

}  // namespace
}  // namespace plumbline::conformance
