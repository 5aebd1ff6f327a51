// Flow networks for tests.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "runtime/partition/flow/max_flow.h"

namespace plumbline::testing {

inline constexpr int64_t kUnbounded = partition::FlowNetwork::kUnbounded;

struct FlowEdge {
  int from, to;
  int64_t capacity;
};

/// Source 0, sink 1.
struct FlowEdges {
  int vertices = 2;
  std::vector<FlowEdge> edges;

  partition::FlowNetwork::Cut cut() const {
    partition::FlowNetwork network(vertices);
    network.reserve(edges.size());
    for (const FlowEdge& edge : edges) network.add_edge(edge.from, edge.to, edge.capacity);
    return network.min_cut(0, 1);
  }
  /// More than all bounded capacities together.
  int64_t wide() const {
    int64_t wide = 1;
    for (const FlowEdge& edge : edges)
      if (edge.capacity != kUnbounded) wide += edge.capacity;
    return wide;
  }
  std::string text() const {
    std::string text;
    for (const FlowEdge& edge : edges)
      text += std::to_string(edge.from) + ">" + std::to_string(edge.to) + ":" +
              (edge.capacity == kUnbounded ? "inf" : std::to_string(edge.capacity)) + " ";
    return text;
  }
};

/// Capacities are 0 to `most`; the fraction `unbounded` of the edges is unbounded.
inline FlowEdges random_flow_edges(std::mt19937_64& random, int vertices, int edges, int64_t most, double unbounded) {
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  FlowEdges network{vertices, {}};
  for (int i = 0; i < edges; ++i) {
    const bool wide = std::uniform_real_distribution<>()(random) < unbounded;
    network.edges.push_back({static_cast<int>(draw(0, vertices - 1)), static_cast<int>(draw(0, vertices - 1)),
                             wide ? kUnbounded : draw(0, most)});
  }
  return network;
}

}  // namespace plumbline::testing
