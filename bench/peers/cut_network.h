// The flow network of one minimum cut of a joint graph as plain edges, to be cut by us and by others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumbline::bench {

struct CutNetwork {
  static constexpr int kSource = 0, kSink = 1;
  struct Edge {
    int from, to;
    int64_t capacity;  ///< FlowNetwork::kUnbounded: none
  };

  std::string graph;
  int nodes = 0;            ///< of the joint graph
  int vertices = 0;         ///< two for each node that may be saved, source and sink
  std::vector<Edge> edges;  ///< no pair of vertices twice
};

/// "transformer", "chain" or "dag" (large_joint_graphs.h) of about so many nodes. As PyTorch's solve_min_cut builds it:
/// an edge through each node that the forward can compute, which weighs its bytes times 1.1 for each step from the
/// backward; what torch-2.15 bans from being computed again hangs on the source, what the backward computes is the
/// sink. Throws InputError for another graph.
CutNetwork cut_network(const std::string& graph, int nodes);

struct CutTimes {
  double build = 0, cut = 0;  ///< seconds, medians; ours builds and cuts in one
  int64_t value = 0;
  std::vector<char> sink_side;  ///< by vertex: it can still reach the sink
};

/// By FlowNetwork, at least five times and for so long.
CutTimes cut_by_us(const CutNetwork& network, double seconds);

/// For minimum_cut.py: vertices, and from, to, capacity (null: unbounded) by edge.
std::string to_json(const CutNetwork& network);
/// What minimum_cut.py wrote of a network with so many vertices. Throws Error for anything else.
CutTimes read_cut_times(const std::string& json, int vertices);

}  // namespace plumbline::bench
