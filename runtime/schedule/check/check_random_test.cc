// Compares the checks with the judge on random schedules: both must call the same schedules broken.
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/testing/random_schedule.h"
#include "runtime/testing/in_full.h"

namespace plumbline::schedule {
namespace {

using Texts = std::vector<std::string>;
using testing::RandomPipe;

constexpr testing::RandomOptions kEverything{.groups = true, .replicas = true};

// A compute schedule, lowered by lower() or at random; every fourth one comes from a generator.
struct Subject {
  Schedule schedule;
  std::vector<StageEdge> edges;
  CheckOptions options;
};

// The named schedule, or 1F1B, which is always possible, where the named one refuses the numbers.
Schedule schedule_or_1f1b(const std::string& name, int ranks, int microbatches) {
  try {
    return make_schedule(name, ranks, microbatches);
  } catch (const InputError&) {
    return make_schedule("1f1b", ranks, microbatches);
  }
}

Subject random_subject(unsigned seed, std::mt19937& random) {
  const bool generated = seed % 4 == 0, plain = seed % 4 == 1;
  RandomPipe pipe = testing::random_pipe(random, plain ? testing::RandomOptions{} : kEverything);
  if (generated) {
    const std::vector<std::string> names = schedule_names();
    const int ranks = 1 + static_cast<int>(random() % 5);
    const int microbatches = 1 + static_cast<int>(random() % 6);
    const Schedule compute = schedule_or_1f1b(names[random() % names.size()], ranks, microbatches);
    const bool forward_only = compute.name == "forward-only";
    pipe = {compute, chain_edges(compute.stages), forward_only};
  }
  Subject subject{pipe.compute, pipe.edges, {.forward_only = pipe.forward_only}};
  subject.options.lowered = random() % 2 == 0;
  if (subject.options.lowered) {
    subject.schedule =
        generated || plain ? lower(pipe.compute, pipe.edges) : testing::random_lowered(pipe, random, kEverything);
  }
  return subject;
}

TEST(CheckRandom, AgreesWithTheJudgeOnMutants) {
  int broken = 0, harmless = 0;
  const int seeds = testing::in_full_or_sample(12000, 4000);
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(seed);
    auto [schedule, edges, options] = random_subject(seed, random);
    ASSERT_EQ(violations(schedule, edges, options), Texts{}) << "seed " << seed << ", before any mutation\n"
                                                             << testing::show(schedule, edges);
    std::string mutation = testing::mutate(schedule, random);
    if (random() % 4 == 0) mutation += "; " + testing::mutate(schedule, random);
    const bool lowered = options.lowered || testing::is_lowered(schedule);
    const bool runs = testing::runs_to_its_end(schedule, edges, options.forward_only, lowered);
    const Texts found = violations(schedule, edges, options);
    ASSERT_EQ(found.empty(), runs) << "seed " << seed << ": " << mutation
                                   << "; reported: " << (found.empty() ? "nothing" : found.front()) << "\n"
                                   << testing::show(schedule, edges);
    ++(runs ? harmless : broken);
  }
  EXPECT_GT(broken, seeds / 2);
  EXPECT_GT(harmless, seeds / 12);
}

// Every number of buffers, with and without waiting at each SEND, on orders that a few swaps may have broken and that
// sometimes lack an action.
TEST(CheckRandom, AgreesWithTheJudgeOnEveryWayToSend) {
  int stuck[2][5] = {}, total = 0, lacking = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {  // with fewer, no order runs only if sends are never waited for
    std::mt19937 random(seed);
    const RandomPipe pipe = testing::random_pipe(random, kEverything);
    Schedule schedule = testing::random_lowered(pipe, random, kEverything);
    for (unsigned swaps = random() % 3; swaps > 0; --swaps) testing::swap_two(schedule, random);
    if (auto& actions = schedule.ranks[random() % schedule.ranks.size()]; random() % 8 == 0 && !actions.empty()) {
      const auto at = actions.begin() + static_cast<std::ptrdiff_t>(random() % actions.size());
      if (!at->overlaps_next && (at == actions.begin() || !(at - 1)->overlaps_next)) {
        actions.erase(at);
        ++lacking;
      }
    }
    ++total;
    for (const bool blocking : {false, true}) {
      bool ran_with_fewer = false;
      for (const int buffers : {0, 1, 2, 3, SendModel::kUnlimited}) {
        const Texts found = deadlocks(schedule, pipe.edges, {.buffers = buffers, .blocking = blocking});
        const bool runs = testing::reaches_its_end(schedule, pipe.edges, buffers, blocking);
        ASSERT_EQ(found.empty(), runs) << "seed " << seed << ", " << buffers << " buffers, blocking " << blocking
                                       << ", reported: " << (found.empty() ? "nothing" : found.front()) << "\n"
                                       << testing::show(schedule, pipe.edges);
        ASSERT_TRUE(runs || !ran_with_fewer) << "seed " << seed << ": more buffers do no harm";
        ran_with_fewer = runs;
        if (!runs) ++stuck[blocking ? 1 : 0][buffers == SendModel::kUnlimited ? 4 : buffers];
      }
    }
  }
  EXPECT_GT(total, 3000);
  EXPECT_GT(lacking, 200);
  for (int buffers = 0; buffers < 3; ++buffers) {
    EXPECT_GT(stuck[1][buffers], stuck[1][buffers + 1]) << "some run only with more than " << buffers << " buffers";
  }
  EXPECT_GT(stuck[0][0], stuck[0][4]) << "waits for sends matter";
  EXPECT_GT(stuck[1][0], stuck[0][0]) << "and waiting at the send itself more so";
}

TEST(CheckRandom, FewestBuffersIsTheFirstThatRuns) {
  int found_some[4] = {}, none = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    std::mt19937 random(seed);
    const RandomPipe pipe = testing::random_pipe(random, kEverything);
    Schedule schedule = testing::random_lowered(pipe, random, kEverything);
    for (unsigned swaps = random() % 2; swaps > 0; --swaps) testing::swap_two(schedule, random);
    std::optional<int> expected;
    for (int buffers = 3; buffers >= 0; --buffers) {
      if (testing::reaches_its_end(schedule, pipe.edges, buffers, true)) expected = buffers;
    }
    ASSERT_EQ(fewest_buffers(schedule, pipe.edges, 3), expected) << "seed " << seed << "\n"
                                                                 << testing::show(schedule, pipe.edges);
    ++(expected ? found_some[*expected] : none);
  }
  for (int buffers = 0; buffers < 3; ++buffers) EXPECT_GT(found_some[buffers], 20) << buffers;
  EXPECT_GT(none, 20);
}

TEST(CheckRandom, ChannelOrderAgreesWithTheJudge) {
  int kept = 0, not_kept = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    std::mt19937 random(seed);
    auto [schedule, edges, options] = random_subject(seed, random);
    for (unsigned swaps = random() % 2; swaps > 0; --swaps) testing::swap_two(schedule, random);
    const bool expected = testing::keeps_channel_order(schedule, edges);
    const Texts found = channel_order_violations(schedule, edges);
    ASSERT_EQ(found.empty(), expected) << "seed " << seed << (found.empty() ? "" : found.front()) << "\n"
                                       << testing::show(schedule, edges);
    ++(expected ? kept : not_kept);
  }
  EXPECT_GT(kept, 1000);
  EXPECT_GT(not_kept, 1000);
}

}  // namespace
}  // namespace plumbline::schedule
