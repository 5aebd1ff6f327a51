// Maximum flow and the minimum cut next to the sink, on flat arrays: Dinic's algorithm (Y. Dinitz, 1970).
#pragma once

#include <cstdint>
#include <vector>

namespace plumbline {

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
    bool unbounded = false;  ///< a path without bound leads from source to sink: `path`, and nothing else is set
    std::vector<Vertex> path = {};
    int64_t value = 0;
    /// By vertex: it can still reach the sink. Of all minimum cuts this is the one nearest to the sink, whatever the
    /// flow: it is the same for every exact algorithm.
    std::vector<char> sink_side = {};
  };
  /// Runs once; the network is spent.
  Cut min_cut(Vertex source, Vertex sink);

 private:
  struct Edge {
    Vertex from, to;
    int64_t capacity;
  };
  int vertices_;
  std::vector<Edge> edges_;
};

}  // namespace plumbline
