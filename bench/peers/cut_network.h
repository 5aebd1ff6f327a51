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
    int from, to;      ///< vertices
    int64_t capacity;  ///< in bytes, weighted by distance; FlowNetwork::kUnbounded if unbounded
  };

  std::string graph;        ///< "transformer", "chain" or "dag"
  int nodes = 0;            ///< the number of nodes of the joint graph
  int vertices = 0;         ///< source, sink, and two for each node not merged into the sink
  std::vector<Edge> edges;  ///< no two lead from the same vertex to the same vertex
};

/// Returns the network of the joint graph "transformer", "chain" or "dag" (large_joint_graphs.h) with about `nodes`
/// nodes. It is built after PyTorch's solve_min_cut, without the factor for values that fusion keeps out of memory:
/// - A node that only the backward can compute (it depends on a tangent or must run in the backward) is merged into the
///   sink.
/// - Every other node is an edge from its first vertex to its second. The capacity is the node's bytes times 1.1 to the
///   power of its distance from the backward (1 to 100 uses), or unbounded if the node cannot be saved.
/// - Unbounded edges lead from a node's second vertex to the first vertices of its users, and to the sink if the
///   backward requires the node though the forward can compute it.
/// - An unbounded edge leads from the source to the first vertex of a node that the policy torch-2.15 bans from
///   recomputation.
/// Parallel edges are merged into one, with the sum of their capacities. Throws InputError for any other `graph`.
CutNetwork cut_network(const std::string& graph, int nodes);

/// A cut of a network, and how long it took.
struct CutMeasurement {
  double build = 0;             ///< median seconds to build one network; 0 from cut_with_flow_network()
  double cut = 0;               ///< median seconds to cut it; from cut_with_flow_network() to build and cut it
  int64_t value = 0;            ///< the capacity of the cut
  std::vector<char> sink_side;  ///< by vertex: 1 if it is on the sink's side of the cut
};

/// Builds and cuts the network with FlowNetwork, at least five times and for at least `seconds` in all. Aborts if the
/// cut is unbounded.
CutMeasurement cut_with_flow_network(const CutNetwork& network, double seconds);

/// Returns the input of minimum_cut.py: a JSON object with the number `vertices`, and with the lists `from`, `to` and
/// `capacity` (null: unbounded), indexed by edge.
std::string to_json(const CutNetwork& network);
/// Reads the output of minimum_cut.py for a network with `vertices` vertices. Throws Error for anything else.
CutMeasurement read_cut_times(const std::string& json, int vertices);

}  // namespace plumbline::bench
