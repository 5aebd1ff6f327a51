// Maximum flow and the minimum cut nearest to the sink, on flat arrays.
//
// Highest-label push-relabel (A. Goldberg and R. Tarjan, 1988) with the gap and global relabelling of B. Cherkassky and
// A. Goldberg ("On implementing the push-relabel method for the maximum flow problem", 1997). Only the first phase
// runs, which suffices for a cut. Joint graphs are long chains with an exit at each node: algorithms that augment path
// by path (Dinic, Boykov-Kolmogorov) walk the chain once per exit, which is quadratic; push-relabel moves the flow of a
// whole chain together. Vertices joined to source or sink by unbounded edges are contracted first, which leaves a small
// network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumbline::partition {

/// A directed network whose vertices are numbered from 0.
class FlowNetwork {
 public:
  using Vertex = int32_t;
  /// The capacity of an unbounded edge.
  static constexpr int64_t kUnbounded = INT64_MAX;

  explicit FlowNetwork(int vertices);
  void reserve(size_t edges);
  /// Adds an edge; ignores self loops and capacities of 0 or less. Vertices are not checked.
  void add_edge(Vertex from, Vertex to, int64_t capacity);

  struct Cut {
    bool unbounded = false;         ///< a path of unbounded edges leads from source to sink: no bounded cut exists
    std::vector<Vertex> path = {};  ///< if `unbounded`: a shortest such path, both ends included
    int64_t value = 0;              ///< capacity of the cut; 0 if `unbounded`
    /// Indexed by vertex, empty if `unbounded`: whether the vertex can still reach the sink. Of all minimum cuts this
    /// is the nearest to the sink. It does not depend on the flow, so every exact algorithm finds the same cut.
    std::vector<char> sink_side = {};
    int64_t steps = 0;  ///< edges visited by the algorithm: a machine-independent measure of cost
  };
  /// Returns the minimum cut nearest to the sink. Aborts if source and sink are the same. Throws InputError if the
  /// bounded capacities on paths from source to sink add up to 2^62 or more. Thread-safe.
  Cut min_cut(Vertex source, Vertex sink) const;

 private:
  struct Edge {
    Vertex from, to;
    int64_t capacity;
  };
  int vertices_;
  std::vector<Edge> edges_;
};

}  // namespace plumbline::partition
