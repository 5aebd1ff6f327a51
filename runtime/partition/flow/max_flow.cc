#include "runtime/partition/flow/max_flow.h"

#include <algorithm>
#include <string>

#include "runtime/error.h"
#include "runtime/partition/flow/push_relabel.h"

namespace plumbline::partition {
namespace {

using Vertex = FlowNetwork::Vertex;
constexpr Vertex kNone = -1;

/// The edges at each vertex, for one of their two ends: edge numbers, by vertex.
struct Incidence {
  std::vector<int32_t> begin, edge;

  template <class End>
  Incidence(int vertices, size_t edges, End&& end) : begin(vertices + 1, 0), edge(edges) {
    for (size_t e = 0; e < edges; ++e) ++begin[end(e) + 1];
    for (int v = 0; v < vertices; ++v) begin[v + 1] += begin[v];
    std::vector<int32_t> next(begin.begin(), begin.end() - 1);
    for (size_t e = 0; e < edges; ++e) edge[next[end(e)]++] = static_cast<int32_t>(e);
  }
};

/// Extends `found`, whose vertices are already marked, along the edges that `other_end` accepts: it maps an edge number
/// to the vertex behind it, or to kNone. Marks and appends newly found vertices.
template <class OtherEnd>
void search(const Incidence& incidence, std::vector<Vertex>& found, std::vector<char>& marked, OtherEnd&& other_end) {
  for (size_t i = 0; i < found.size(); ++i) {
    const Vertex v = found[i];
    for (int32_t k = incidence.begin[v]; k < incidence.begin[v + 1]; ++k) {
      const Vertex to = other_end(incidence.edge[k]);
      if (to == kNone || marked[to]) continue;
      marked[to] = 1;
      found.push_back(to);
    }
  }
}

}  // namespace

FlowNetwork::FlowNetwork(int vertices) : vertices_(vertices) {}

void FlowNetwork::reserve(size_t edges) { edges_.reserve(edges); }

void FlowNetwork::add_edge(Vertex from, Vertex to, int64_t capacity) {
  if (from != to && capacity > 0) edges_.push_back({from, to, capacity});
}

FlowNetwork::Cut FlowNetwork::min_cut(Vertex source, Vertex sink) const {
  PLUMBLINE_CHECK(source != sink, "source and sink are the same vertex");
  Cut cut;
  const Incidence outgoing(vertices_, edges_.size(), [&](size_t e) { return edges_[e].from; });
  const Incidence incoming(vertices_, edges_.size(), [&](size_t e) { return edges_[e].to; });
  cut.steps = 2 * static_cast<int64_t>(edges_.size());

  // A vertex with an unbounded path from the source is never cut off from it, and likewise for the sink.
  std::vector<char> with_source(vertices_, 0), with_sink(vertices_, 0);
  std::vector<Vertex> from_source{source}, from_sink{sink};
  std::vector<Vertex> parent(vertices_, kNone);
  with_source[source] = with_sink[sink] = 1;
  search(outgoing, from_source, with_source, [&](int32_t e) {
    const Edge& edge = edges_[e];
    if (edge.capacity != kUnbounded) return kNone;
    if (!with_source[edge.to]) parent[edge.to] = edge.from;
    return edge.to;
  });
  if (with_source[sink]) {
    cut.unbounded = true;
    for (Vertex v = sink; v != kNone; v = parent[v]) cut.path.push_back(v);
    std::reverse(cut.path.begin(), cut.path.end());
    return cut;
  }
  search(incoming, from_sink, with_sink,
         [&](int32_t e) { return edges_[e].capacity == kUnbounded ? edges_[e].from : kNone; });

  // Only vertices between the two matter: reachable from the source, and reaching the sink.
  std::vector<char> reached = with_source, reaching = with_sink;
  search(outgoing, from_source, reached, [&](int32_t e) { return with_sink[edges_[e].to] ? kNone : edges_[e].to; });
  search(incoming, from_sink, reaching,
         [&](int32_t e) { return with_source[edges_[e].from] ? kNone : edges_[e].from; });

  constexpr Vertex kSource = 0, kSink = 1;
  std::vector<Vertex> compact(vertices_, kNone);
  Vertex vertices = 2;
  for (Vertex v = 0; v < vertices_; ++v)
    if (with_source[v])
      compact[v] = kSource;
    else if (with_sink[v])
      compact[v] = kSink;
    else if (reached[v] && reaching[v])
      compact[v] = vertices++;

  std::vector<Edge> kept;
  int64_t total = 0;
  for (const Edge& edge : edges_) {
    const Vertex from = compact[edge.from], to = compact[edge.to];
    if (from == kNone || to == kNone || from == to || to == kSource || from == kSink) continue;
    if (edge.capacity != kUnbounded) {
      constexpr int64_t kMost = int64_t{1} << 62;
      if (edge.capacity >= kMost - total)
        throw InputError("the capacities of the minimum cut add up to 2^62 or more; they must add up to less");
      total += edge.capacity;
    }
    if (from == kSource && to == kSink)
      cut.value += edge.capacity;
    else
      kept.push_back({from, to, edge.capacity});
  }

  ResidualNetwork network;
  network.begin.assign(vertices + 1, 0);
  for (const Edge& edge : kept) {
    ++network.begin[edge.from + 1];
    ++network.begin[edge.to + 1];
  }
  for (Vertex v = 0; v < vertices; ++v) network.begin[v + 1] += network.begin[v];
  network.head.resize(2 * kept.size());
  network.mate.resize(2 * kept.size());
  network.residual.resize(2 * kept.size());
  std::vector<int32_t> next(network.begin.begin(), network.begin.end() - 1);
  for (const Edge& edge : kept) {
    const int32_t forth = next[edge.from]++, back = next[edge.to]++;
    network.head[forth] = edge.to;
    network.head[back] = edge.from;
    network.mate[forth] = back;
    network.mate[back] = forth;
    // All bounded capacities together cannot fill an unbounded edge.
    network.residual[forth] = edge.capacity == kUnbounded ? total + 1 : edge.capacity;
    network.residual[back] = 0;
  }
  const Preflow flow = maximum_preflow(network, kSource, kSink);
  cut.value += flow.value;
  cut.steps += flow.steps;
  // Vertices that the source does not reach carry no flow: they reach the sink if they lead to a vertex that does.
  cut.sink_side = std::move(with_sink);
  std::vector<Vertex> to_sink;
  for (Vertex v = 0; v < vertices_; ++v) {
    if (compact[v] > kSink) cut.sink_side[v] = flow.reaches_sink[compact[v]];
    if (cut.sink_side[v]) to_sink.push_back(v);
  }
  search(incoming, to_sink, cut.sink_side,
         [&](int32_t e) { return compact[edges_[e].from] == kNone ? edges_[e].from : kNone; });
  return cut;
}

}  // namespace plumbline::partition
