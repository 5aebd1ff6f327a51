// The flow network of one minimum cut of a joint graph, as a list of edges that other libraries can cut too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumbline::bench {

/// Vertices are numbered from 0; the first two are the source and the sink.
struct CutNetwork {
  static constexpr int kSource = 0, kSink = 1;
  struct Edge {
    int from, to;
    int64_t capacity;  ///< in bytes, weighted by distance; FlowNetwork::kUnbounded if unbounded
  };

  std::string graph;        ///< "transformer", "chain" or "dag"
  int nodes = 0;            ///< the number of nodes of the joint graph
  int vertices = 0;         ///< source, sink, and two for each node not merged into the sink
  std::vector<Edge> edges;  ///< no two lead from the same vertex to the same vertex
};

/// The network for "transformer", "chain" or "dag" (large_joint_graphs.h) with about `nodes` nodes, as PyTorch's
/// solve_min_cut builds it. A node that must be in the backward is merged into the sink. Every other node is an edge
/// from its first vertex to its second, whose capacity is its bytes times 1.1 to the power of its distance from the
/// backward (1 to 100 steps), or unbounded if the node cannot be saved. Unbounded edges lead to its users and, if the
/// policy torch-2.15 bans the node from recomputation, from the source. Throws InputError for any other `graph`.
CutNetwork cut_network(const std::string& graph, int nodes);

struct CutTimes {
  double build = 0, cut = 0;    ///< median seconds for one network; cut_by_us() leaves `build` 0
  int64_t value = 0;            ///< the capacity of the cut
  std::vector<char> sink_side;  ///< by vertex: 1 if it is on the sink's side of the cut
};

/// Builds and cuts the network with FlowNetwork at least five times and for at least `seconds` in all; `cut` covers
/// both. Aborts if the cut is unbounded.
CutTimes cut_by_us(const CutNetwork& network, double seconds);

/// The input of minimum_cut.py: an object with `vertices`, and with the lists `from`, `to` and `capacity` (null:
/// unbounded), indexed by edge.
std::string to_json(const CutNetwork& network);
/// Reads the output of minimum_cut.py for a network with `vertices` vertices. Throws Error for anything else.
CutTimes read_cut_times(const std::string& json, int vertices);

}  // namespace plumbline::bench
