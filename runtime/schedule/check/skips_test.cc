// Every generated schedule with tensors that skip stages: nested as in a U-Net, and the longest possible.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/schedule/check/check.h"
#include "runtime/schedule/lowering/lower.h"
#include "runtime/schedule/lowering/pytorch.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/simulation/simulation.h"
#include "runtime/schedule/testing/schedule_judge.h"
#include "runtime/schedule/testing/simulation_oracle.h"

namespace plumbline::schedule {
namespace {

using Texts = std::vector<std::string>;

// Stage i feeds its mirror image S-1-i; the lower of the two in the middle feeds the next stage.
std::vector<Skip> nested(int stages) {
  std::vector<Skip> skips;
  for (int i = 0; i < stages - 1 - i; ++i) skips.push_back({.edge = {i, stages - 1 - i}});
  return skips;
}

std::vector<Skip> far(int stages) { return {{.edge = {0, stages - 1}}}; }

struct SkipSubject {
  Schedule compute;
  std::vector<Skip> skips;
  std::string context;

  std::vector<StageEdge> edges() const { return with_skips(chain_edges(compute.stages), skips); }
  bool forward_only() const { return !has_backward(compute); }
};

// On `ranks`, with the fewest micro-batches that each kind accepts.
std::vector<SkipSubject> subjects(int ranks) {
  std::vector<SkipSubject> all;
  for (const ScheduleKind& kind : schedule_kinds()) {
    const Schedule compute = make_schedule(std::string(kind.name), ranks, 2 * ranks);
    const std::string context = compute.name + " on " + std::to_string(ranks) + " ranks, ";
    all.push_back({compute, nested(compute.stages), context + "nested"});
    all.push_back({compute, far(compute.stages), context + "far"});
  }
  return all;
}

// With either lowering, and sends that do not block. A SEND is complete once its receive is posted, or while it
// occupies one of `buffers`: its rank waits for it only at the end of the step, or (in PyTorch's lowering) at its
// WAIT_SEND.
TEST(SkipsOfAllSchedules, RunWhereSendsDoNotBlock) {
  int judged = 0;
  for (const int ranks : {2, 4, 8}) {
    for (const SkipSubject& s : subjects(ranks)) {
      const std::vector<StageEdge> edges = s.edges();
      ASSERT_EQ(violations(s.compute, edges, {.forward_only = s.forward_only()}), Texts{}) << s.context;
      for (const Schedule& lowered : {lower(s.compute, edges), lower_as_pytorch(s.compute, edges)}) {
        ASSERT_EQ(violations(lowered, edges, {.forward_only = s.forward_only(), .lowered = true}), Texts{})
            << s.context;
        for (const int buffers : {0, 1, 2, 3, 4, SendModel::kUnlimited}) {
          ASSERT_EQ(deadlocks(lowered, edges, {.buffers = buffers}), Texts{}) << s.context << ", " << buffers;
        }
        if (ranks > 4) continue;
        ++judged;
        ASSERT_TRUE(testing::runs_to_its_end(lowered, edges, s.forward_only(), true)) << s.context;
        for (const int buffers : {1, 2, 3, 4}) {
          ASSERT_TRUE(testing::reaches_its_end(lowered, edges, buffers, false)) << s.context << ", " << buffers;
        }
      }
    }
  }
  EXPECT_GE(judged, 152);
}

// In small steps of time, on links that are occupied and links that only delay: the peak that each rank holds, and the
// time at which it is done.
TEST(SkipsOfAllSchedules, MemoryAndTimeAreThoseOfASlowSimulator) {
  int dearer = 0;
  for (const int ranks : {2, 4, 8}) {
    for (const SkipSubject& s : subjects(ranks)) {
      StepCosts costs;
      costs.durations[0] = {.forward = 2, .input = 2, .weight = 1, .backward = {}, .comm = 1};
      costs.memory[0] = {.activation = 4, .weight_part = 1};
      costs.links.all.bandwidth = 1;
      costs.links.bytes = {1};
      costs.links.occupied = ranks != 4;
      const std::vector<StageEdge> chain = chain_edges(s.compute.stages);
      const std::vector<double> without = simulate_step(s.compute, chain, costs).peak_memory;
      for (const Skip& skip : s.skips) {
        costs.skips.push_back({.edge = skip.edge, .bytes = 2.0 + skip.edge.from % 3, .weight_part = 1});
      }
      const Simulation fast = simulate_step(s.compute, chain, costs);
      const testing::SlowStep slow = testing::slow_step(s.compute, chain, costs);
      ASSERT_FALSE(slow.deadlock) << s.context;
      ASSERT_EQ(fast.peak_memory, slow.peak_memory) << s.context;
      ASSERT_EQ(fast.timeline.makespan, slow.makespan) << s.context;
      if (fast.peak_memory != without) ++dearer;
    }
  }
  EXPECT_GE(dearer, 100);
}

// Where a rank waits at each SEND until it is complete, in our own lowering, with two micro-batches for a rank. The
// last rank receives late what rank 0 sends ahead, so most orders need more buffers than their chain does, and a
// rendezvous stalls them. PyTorch's lowering posts each receive as soon as it is sent, and needs no buffers.
TEST(SkipsOfAllSchedules, MustHaveMoreBuffersWhereSendsBlock) {
  struct Row {
    std::string name;
    int chain[3], nested[3], far[3];  // on 2, 4 and 8 ranks
  };
  const std::vector<Row> rows = {
      {"gpipe", {0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
      {"1f1b", {0, 0, 0}, {0, 1, 3}, {0, 1, 3}},
      {"eager-1f1b", {0, 0, 0}, {0, 2, 6}, {0, 2, 6}},
      {"interleaved-1f1b", {1, 1, 1}, {3, 7, 15}, {3, 4, 8}},
      {"looped-bfs", {1, 1, 1}, {3, 7, 15}, {3, 7, 15}},
      {"zb-h1", {0, 0, 0}, {0, 1, 3}, {0, 1, 3}},
      {"zb-h2", {1, 1, 1}, {1, 2, 6}, {1, 2, 6}},
      {"zb-auto", {0, 0, 0}, {0, 1, 3}, {0, 1, 3}},
      {"interleaved-zero-bubble", {1, 2, 4}, {2, 5, 11}, {2, 5, 11}},
      {"zb-v", {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {"zb-v-greedy", {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {"v-half", {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {"v-min", {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {"dualpipe-v", {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {"dualpipe", {1, 1, 1}, {1, 3, 7}, {1, 3, 7}},
      {"chimera", {0, 0, 0}, {0, 1, 3}, {0, 1, 3}},
      {"hanayo", {0, 1, 1}, {0, 1, 1}, {0, 1, 1}},
      {"seq1f1b", {0, 0, 0}, {0, 1, 3}, {0, 1, 3}},
      {"forward-only", {0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
  };
  ASSERT_EQ(rows.size(), schedule_kinds().size());
  for (std::size_t size = 0; size < 3; ++size) {
    const int ranks = 2 << size;
    for (const Row& row : rows) {
      const Schedule compute = make_schedule(row.name, ranks, 2 * ranks);
      const std::vector<StageEdge> chain = chain_edges(compute.stages);
      const std::pair<std::vector<StageEdge>, int> expected[] = {
          {chain, row.chain[size]},
          {with_skips(chain, nested(compute.stages)), row.nested[size]},
          {with_skips(chain, far(compute.stages)), row.far[size]}};
      for (const auto& [edges, buffers] : expected) {
        const std::string context =
            row.name + " on " + std::to_string(ranks) + " ranks, " + std::to_string(edges.size()) + " edges";
        const Schedule lowered = lower(compute, edges);
        EXPECT_EQ(fewest_buffers(lowered, edges, 20), buffers) << context;
        // Its two replicas reach their stages at different times, and their actions of whole stages move the receives.
        const int of_pytorch = row.name == "chimera" && ranks == 8 && edges.size() > chain.size() ? 1 : 0;
        EXPECT_EQ(fewest_buffers(lower_as_pytorch(compute, edges), edges, 20), of_pytorch) << context;
        if (ranks > 4) continue;
        EXPECT_TRUE(testing::reaches_its_end(lowered, edges, buffers, true)) << context;
        if (buffers > 0) {
          EXPECT_FALSE(testing::reaches_its_end(lowered, edges, buffers - 1, true)) << context;
        }
      }
    }
  }
}

TEST(SkipsOfAllSchedules, ADeadlockOfBlockingSendsIsTold) {
  const Schedule compute = make_schedule("1f1b", 4, 8);
  const std::vector<StageEdge> edges = with_skips(chain_edges(4), far(4));
  EXPECT_EQ(deadlocks(lower(compute, edges), edges, {.buffers = 0, .blocking = true}),
            Texts{"deadlock, a cycle: rank 0, position 5 (0SEND_F2) waits until rank 3 posts 3RECV_F2 at position 6; "
                  "rank 3, position 4 (3SEND_B0) waits until rank 0 posts 0RECV_B0 at position 6"});
}

}  // namespace
}  // namespace plumbline::schedule
