// The first phase of push-relabel on a network without unbounded capacities; see max_flow.h, which is what to use.
#pragma once

#include <cstdint>
#include <vector>

namespace plumbline::partition {

/// A bounded network in flat arrays. The arcs of vertex v are begin[v] .. begin[v + 1] - 1; each edge is two arcs, one
/// at either end, and `mate` leads from one to the other.
struct ResidualNetwork {
  std::vector<int32_t> begin;     ///< by vertex, and one more
  std::vector<int32_t> head;      ///< by arc: where it leads
  std::vector<int32_t> mate;      ///< by arc
  std::vector<int64_t> residual;  ///< by arc: capacity left; 0 for the arc against an edge
  int vertices() const { return static_cast<int>(begin.size()) - 1; }
};

struct Preflow {
  int64_t value = 0;
  /// By vertex: it can reach the sink along residual arcs. No minimum cut's sink side is smaller.
  std::vector<char> reaches_sink;
  int64_t steps = 0;  ///< arcs looked at
};

/// Pushes as much as can arrive from source to sink; the residual capacities are spent. The capacities that leave the
/// source must add up to less than 2^63.
Preflow maximum_preflow(ResidualNetwork& network, int32_t source, int32_t sink);

}  // namespace plumbline::partition
