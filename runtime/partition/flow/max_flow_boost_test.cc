// Compares cuts with an independent algorithm: Boykov-Kolmogorov of the Boost Graph Library.
#include <gtest/gtest.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC sees some in Boost's iterators
#endif
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/partition/flow/max_flow.h"
#include "runtime/partition/testing/flow_edges.h"

namespace plumbline::partition {
namespace {

using testing::FlowEdge;
using testing::FlowEdges;
using testing::kUnbounded;
using testing::random_flow_edges;

/// Value and the vertices that can still reach the sink, from Boost's Boykov-Kolmogorov.
std::pair<int64_t, std::vector<char>> boost_cut(const FlowEdges& network, int64_t wide) {
  using namespace boost;
  using Traits = adjacency_list_traits<vecS, vecS, directedS>;
  using Graph = adjacency_list<
      vecS, vecS, directedS, no_property,
      property<edge_capacity_t, int64_t,
               property<edge_residual_capacity_t, int64_t, property<edge_reverse_t, Traits::edge_descriptor>>>>;
  Graph graph(network.vertices);
  const auto capacity = get(edge_capacity, graph);
  const auto residual = get(edge_residual_capacity, graph);
  const auto reverse = get(edge_reverse, graph);
  for (const FlowEdge& edge : network.edges) {
    if (edge.from == edge.to) continue;
    const auto forth = boost::add_edge(edge.from, edge.to, graph).first;
    const auto back = boost::add_edge(edge.to, edge.from, graph).first;
    capacity[forth] = edge.capacity == kUnbounded ? wide : edge.capacity;
    capacity[back] = 0;
    reverse[forth] = back;
    reverse[back] = forth;
  }
  std::vector<Traits::edge_descriptor> predecessor(network.vertices);
  std::vector<default_color_type> color(network.vertices);
  std::vector<long> distance(network.vertices);
  const int64_t value = boykov_kolmogorov_max_flow(graph, capacity, residual, reverse, predecessor.data(), color.data(),
                                                   distance.data(), get(vertex_index, graph), 0, 1);
  std::vector<char> side(network.vertices, 0);
  std::vector<int> open{1};
  side[1] = 1;
  while (!open.empty()) {
    const int v = open.back();
    open.pop_back();
    const auto [first, last] = out_edges(v, graph);
    for (auto edge = first; edge != last; ++edge) {
      const int u = static_cast<int>(target(*edge, graph));
      if (side[u] || residual[reverse[*edge]] == 0) continue;
      side[u] = 1;
      open.push_back(u);
    }
  }
  return {value, side};
}

TEST(MaxFlowAgainstBoost, RandomNetworks) {
  for (int seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    const int vertices = 2 + seed % 97;
    const FlowEdges network =
        random_flow_edges(random, vertices, vertices * (1 + seed % 5), seed % 2 ? 3 : 1'000'000'000'000, 0.05);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int64_t wide = network.wide();
    const auto [value, side] = boost_cut(network, wide);
    const FlowNetwork::Cut cut = network.cut();
    ASSERT_EQ(cut.unbounded, value >= wide);
    if (cut.unbounded) continue;
    EXPECT_EQ(cut.value, value);
    EXPECT_EQ(cut.sink_side, side);
  }
}

/// Small networks shaped like joint graphs: two vertices per node, an unbounded edge to each user, sources and sinks in
/// places.
TEST(MaxFlowAgainstBoost, LayeredNetworks) {
  for (int seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](int most) { return static_cast<int>(random() % (most + 1)); };
    const int nodes = 20 + draw(200);
    FlowEdges network{2 + 2 * nodes, {}};
    for (int i = 0; i < nodes; ++i) {
      network.edges.push_back({2 + 2 * i, 3 + 2 * i, 1 + draw(40)});
      for (int k = 0; k < 2 && i > 0; ++k)
        network.edges.push_back({3 + 2 * std::max(0, i - 1 - draw(k * 30)), 2 + 2 * i, kUnbounded});
      if (i == 0 || draw(9) == 0) network.edges.push_back({0, 2 + 2 * i, kUnbounded});
      if (draw(6) == 0) network.edges.push_back({3 + 2 * i, 1, kUnbounded});
      if (draw(6) == 0) network.edges.push_back({3 + 2 * i, 1, 1 + draw(3)});
    }
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int64_t wide = network.wide();
    const auto [value, side] = boost_cut(network, wide);
    const FlowNetwork::Cut cut = network.cut();
    ASSERT_FALSE(cut.unbounded);
    EXPECT_EQ(cut.value, value);
    EXPECT_EQ(cut.sink_side, side);
  }
}

constexpr int kLongPath = 5'000;
constexpr int64_t kMostStepsPerEdge = 100;  // see max_flow_test.cc

TEST(MaxFlowAgainstBoost, WaysInAndOutAndNarrowPlaces) {
  std::mt19937_64 random(1);
  FlowEdges network{2 + kLongPath, {}};
  for (int i = 0; i < kLongPath; ++i) {
    if (i + 1 < kLongPath) network.edges.push_back({2 + i, 3 + i, static_cast<int64_t>(random() % 100)});
    if (random() % 3 == 0) network.edges.push_back({0, 2 + i, static_cast<int64_t>(random() % 50)});
    if (random() % 3 == 0) network.edges.push_back({2 + i, 1, static_cast<int64_t>(random() % 50)});
  }
  const FlowNetwork::Cut cut = network.cut();
  const auto [value, side] = boost_cut(network, 1);
  EXPECT_EQ(cut.value, value);
  EXPECT_EQ(cut.sink_side, side);
  EXPECT_LT(cut.steps, kMostStepsPerEdge * std::ssize(network.edges));
}

TEST(MaxFlowAgainstBoost, TwoChainsWithRungs) {
  std::mt19937_64 random(2);
  FlowEdges network{2 + 2 * kLongPath, {{0, 2, kUnbounded / 4}, {0, 3, 1'000'000}}};
  for (int i = 0; i < kLongPath; ++i) {
    const int left = 2 + 2 * i, right = 3 + 2 * i;
    if (i + 1 < kLongPath) {
      network.edges.push_back({left, left + 2, 1'000 + static_cast<int64_t>(random() % 1'000'000)});
      network.edges.push_back({right, right + 2, 1'000 + static_cast<int64_t>(random() % 1'000'000)});
    }
    network.edges.push_back({left, right, static_cast<int64_t>(random() % 1'000)});
    if (i % 7 == 0) network.edges.push_back({right, 1, static_cast<int64_t>(random() % 1'000)});
  }
  const FlowNetwork::Cut cut = network.cut();
  const auto [value, side] = boost_cut(network, 1);
  EXPECT_EQ(cut.value, value);
  EXPECT_EQ(cut.sink_side, side);
  EXPECT_LT(cut.steps, kMostStepsPerEdge * std::ssize(network.edges));
}

}  // namespace
}  // namespace plumbline::partition
