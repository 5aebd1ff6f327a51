// Maximum flow and the minimum cut next to the sink, on flat arrays.
//
// Push-relabel from the highest label (A. Goldberg and R. Tarjan, 1988), with the gap and global relabelling of
// B. Cherkassky and A. Goldberg ("On implementing the push-relabel method for the maximum flow problem", 1997); its
// first phase only, which is all that a cut needs. Joint graphs are long chains with a way out at each node: algorithms
// that augment path by path (Dinic, Boykov-Kolmogorov) walk such a chain once for each way out, which is quadratic;
// here the flow through a chain moves together. Parts without bound are contracted beforehand, which leaves little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumbline::partition {

class FlowNetwork {
 public:
  using Vertex = int32_t;
  /// Stands for a capacity without bound.
  static constexpr int64_t kUnbounded = INT64_MAX;

  explicit FlowNetwork(int vertices);
  void reserve(size_t edges);
  /// Self loops and capacities of 0 or less are left out.
  void add_edge(Vertex from, Vertex to, int64_t capacity);

  struct Cut {
    bool unbounded = false;         ///< a path without bound leads from source to sink: `path`, and nothing else is set
    std::vector<Vertex> path = {};  ///< a shortest such path, both ends included
    int64_t value = 0;
    /// By vertex: it can still reach the sink. Of all minimum cuts this is the one nearest to the sink, whatever the
    /// flow: it is the same for every exact algorithm.
    std::vector<char> sink_side = {};
    int64_t steps = 0;  ///< edges looked at by the algorithm: what it cost, in a unit that does not depend on machines
  };
  /// Source and sink must differ. Throws InputError where the bounded capacities add up to 2^62 or more.
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
