// The flow network of one minimum cut of a joint graph, as plain edges that other libraries can cut too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumbline::bench {

struct CutNetwork {
  static constexpr int kSource = 0, kSink = 1;
  struct Edge {
    int from, to;
    int64_t capacity;  ///< FlowNetwork::kUnbounded if unbounded
  };

  std::string graph;
  int nodes = 0;            ///< of the joint graph
  int vertices = 0;         ///< two for each node that may be saved, plus source and sink
  std::vector<Edge> edges;  ///< no pair of vertices occurs twice
};

/// The network for "transformer", "chain" or "dag" (large_joint_graphs.h) with about `nodes` nodes, as PyTorch's
/// solve_min_cut builds it: each node that the forward can compute is an edge that weighs its bytes times 1.1 per step
/// from the backward; nodes that torch-2.15 bans from recomputation are connected to the source; the backward's nodes
/// are the sink. Throws InputError for another graph.
CutNetwork cut_network(const std::string& graph, int nodes);

struct CutTimes {
  double build = 0, cut = 0;  ///< seconds, medians; FlowNetwork builds and cuts in one call
  int64_t value = 0;
  std::vector<char> sink_side;  ///< by vertex: whether it can still reach the sink
};

/// Cuts with FlowNetwork, at least five times and for at least `seconds`.
CutTimes cut_by_us(const CutNetwork& network, double seconds);

/// The input of minimum_cut.py: vertices, and from, to, capacity (null: unbounded) by edge.
std::string to_json(const CutNetwork& network);
/// Reads the output of minimum_cut.py for a network with that many vertices. Throws Error for anything else.
CutTimes read_cut_times(const std::string& json, int vertices);

}  // namespace plumbline::bench
