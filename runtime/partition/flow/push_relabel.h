// The first phase of push-relabel on a network without unbounded capacities. Internal to max_flow.cc; callers use
// max_flow.h.
#pragma once

#include <cstdint>
#include <vector>

namespace plumbline::partition {

/// A bounded network in flat arrays. The arcs of vertex v are begin[v] .. begin[v + 1] - 1. Each edge has two arcs, one
/// at either end.
struct ResidualNetwork {
  std::vector<int32_t> begin;     ///< by vertex, plus the end
  std::vector<int32_t> head;      ///< by arc: the vertex that it leads to
  std::vector<int32_t> mate;      ///< by arc: the other arc of its edge
  std::vector<int64_t> residual;  ///< by arc: remaining capacity; initially 0 for the arc at the edge's target
  int vertices() const { return static_cast<int>(begin.size()) - 1; }
};

struct Preflow {
  int64_t value = 0;  ///< flow that arrives at the sink
  /// By vertex: whether it can reach the sink along residual arcs. No minimum cut has a smaller sink side.
  std::vector<char> reaches_sink;
  int64_t steps = 0;  ///< arcs visited
};

/// Pushes as much flow from source to sink as can arrive, and changes network.residual accordingly. The capacities of
/// the edges from the source must add up to less than 2^63.
Preflow maximum_preflow(ResidualNetwork& network, int32_t source, int32_t sink);

}  // namespace plumbline::partition
