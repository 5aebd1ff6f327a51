// Maximum flow and the minimum cut nearest to the sink, on flat arrays.
//
// Highest-label push-relabel (A. Goldberg and R. Tarjan, 1988) with the gap and global relabelling of B. Cherkassky and
// A. Goldberg ("On implementing the push-relabel method for the maximum flow problem", 1997); only its first phase,
// which suffices for a cut. Joint graphs are long chains with an exit at each node: algorithms that augment path by
// path (Dinic, Boykov-Kolmogorov) walk the chain once per exit, which is quadratic; push-relabel moves the flow of a
// whole chain together. Parts joined by unbounded edges are contracted first, which leaves a small network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumbline::partition {

class FlowNetwork {
 public:
  using Vertex = int32_t;
  /// The capacity of an unbounded edge.
  static constexpr int64_t kUnbounded = INT64_MAX;

  explicit FlowNetwork(int vertices);
  void reserve(size_t edges);
  /// Drops self loops and capacities of 0 or less.
  void add_edge(Vertex from, Vertex to, int64_t capacity);

  struct Cut {
    bool unbounded = false;         ///< an unbounded path leads from source to sink; then only `path` is set
    std::vector<Vertex> path = {};  ///< a shortest such path, both ends included
    int64_t value = 0;
    /// By vertex: whether it can still reach the sink. Of all minimum cuts this is the one nearest to the sink; it does
    /// not depend on the flow, so every exact algorithm finds the same one.
    std::vector<char> sink_side = {};
    int64_t steps = 0;  ///< edges visited by the algorithm: a machine-independent measure of cost
  };
  /// Source and sink must differ. Throws InputError if the bounded capacities add up to 2^62 or more.
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
