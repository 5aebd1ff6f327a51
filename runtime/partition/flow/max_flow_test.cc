#include "runtime/partition/flow/max_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/partition/testing/flow_edges.h"

namespace plumbline::partition {
namespace {

using testing::FlowEdge;
using testing::FlowEdges;
using testing::kUnbounded;
using testing::random_flow_edges;

/// The result by exhaustive search: value, and the vertices on the sink's side of every minimum cut.
struct BruteForce {
  std::optional<int64_t> value;  ///< unset: no cut is bounded
  std::vector<char> sink_side;
};

BruteForce try_all_cuts(const FlowEdges& network) {
  BruteForce best;
  for (uint32_t sides = 0; sides < (1u << network.vertices); ++sides) {  // bit v: v is on the sink's side
    if ((sides & 1) || !(sides & 2)) continue;
    int64_t value = 0;
    bool bounded = true;
    for (const FlowEdge& edge : network.edges) {
      if ((sides >> edge.from & 1) || !(sides >> edge.to & 1)) continue;
      if (edge.capacity == kUnbounded) bounded = false;
      if (bounded) value += edge.capacity;
    }
    if (!bounded || (best.value && value > *best.value)) continue;
    if (!best.value || value < *best.value) best.sink_side.assign(network.vertices, 1);
    best.value = value;
    for (int v = 0; v < network.vertices; ++v) best.sink_side[v] = best.sink_side[v] && (sides >> v & 1);
  }
  return best;
}

TEST(MaxFlow, FindsTheCutNearestToTheSinkOfAllCuts) {
  for (int seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    const int vertices = 2 + seed % 9;
    const FlowEdges network =
        random_flow_edges(random, vertices, 1 + seed % 23, 1 + seed % 5, seed % 3 == 0 ? 0.3 : 0.05);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + network.text());
    const BruteForce expected = try_all_cuts(network);
    const FlowNetwork::Cut cut = network.cut();
    ASSERT_EQ(cut.unbounded, !expected.value);
    if (cut.unbounded) {
      ASSERT_GE(cut.path.size(), 2u);
      EXPECT_EQ(cut.path.front(), 0);
      EXPECT_EQ(cut.path.back(), 1);
      for (size_t i = 0; i + 1 < cut.path.size(); ++i)
        EXPECT_TRUE(std::any_of(network.edges.begin(), network.edges.end(), [&](const FlowEdge& edge) {
          return edge.from == cut.path[i] && edge.to == cut.path[i + 1] && edge.capacity == kUnbounded;
        }));
      continue;
    }
    EXPECT_EQ(cut.value, *expected.value);
    EXPECT_EQ(cut.sink_side, expected.sink_side);
  }
}

// Chains of 100 000 vertices, on which algorithms with augmenting paths take quadratically many steps. The bound is on
// steps, not on time.
constexpr int kLong = 100'000;
constexpr int64_t kStepsPerEdge = 100;

TEST(MaxFlowChain, OneWay) {
  FlowEdges network{2 + kLong, {{0, 2, 7}, {kLong + 1, 1, 5}}};
  for (int i = 0; i + 1 < kLong; ++i) network.edges.push_back({2 + i, 3 + i, 6 + i % 3});
  const FlowNetwork::Cut cut = network.cut();
  EXPECT_EQ(cut.value, 5);
  EXPECT_EQ(std::count(cut.sink_side.begin(), cut.sink_side.end(), 1), 1);
  EXPECT_LT(cut.steps, kStepsPerEdge * std::ssize(network.edges));
}

TEST(MaxFlowChain, AWayOutAtEachVertex) {
  FlowEdges network{2 + kLong, {{0, 2, 3 * kLong}}};
  for (int i = 0; i < kLong; ++i) {
    if (i + 1 < kLong) network.edges.push_back({2 + i, 3 + i, 3 * (kLong - i)});
    network.edges.push_back({2 + i, 1, 1 + i % 2});
  }
  const FlowNetwork::Cut cut = network.cut();
  EXPECT_EQ(cut.value, kLong + kLong / 2);
  EXPECT_LT(cut.steps, kStepsPerEdge * std::ssize(network.edges));
}

TEST(MaxFlowChain, AWayInAtEachVertex) {
  FlowEdges network{2 + kLong, {{kLong + 1, 1, 2 * kLong}}};
  for (int i = 0; i < kLong; ++i) {
    if (i + 1 < kLong) network.edges.push_back({2 + i, 3 + i, 2 * (i + 1)});
    network.edges.push_back({0, 2 + i, 1 + i % 2});
  }
  const FlowNetwork::Cut cut = network.cut();
  EXPECT_EQ(cut.value, kLong + kLong / 2);
  EXPECT_LT(cut.steps, kStepsPerEdge * std::ssize(network.edges));
}

TEST(MaxFlow, AVertexThatTheSourceDoesNotReachFollowsTheOneItLeadsTo) {
  // 2 is cut from the sink (its edge to 1 is the bottleneck); 3 leads to 2 only; 4 leads to 3 and directly to the sink.
  const FlowEdges network{5, {{0, 2, 5}, {2, 1, 1}, {3, 2, 1}, {4, 3, 1}, {4, 1, 1}}};
  const FlowNetwork::Cut cut = network.cut();
  EXPECT_EQ(cut.value, 1);
  EXPECT_EQ(cut.sink_side, (std::vector<char>{0, 1, 0, 0, 1}));
}

TEST(MaxFlow, RefusesCapacitiesThatWouldOverflow) {
  const FlowEdges network{3, {{0, 2, kUnbounded / 2}, {2, 1, kUnbounded / 2}}};
  EXPECT_THROW(network.cut(), InputError);
}

}  // namespace
}  // namespace plumbline::partition
