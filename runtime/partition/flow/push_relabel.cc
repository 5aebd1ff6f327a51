#include "runtime/partition/flow/push_relabel.h"

#include <algorithm>

namespace plumbline::partition {
namespace {

constexpr int32_t kEnd = -1;

/// The state of one run. A vertex with label n (the number of vertices) cannot reach the sink any more and keeps its
/// excess; source and sink are in no list.
class PushRelabel {
 public:
  PushRelabel(ResidualNetwork& network, int32_t source, int32_t sink)
      : net_(network),
        n_(network.vertices()),
        source_(source),
        sink_(sink),
        label_(n_, n_),
        arc_(n_),
        excess_(n_, 0),
        first_active_(n_, kEnd),
        next_active_(n_, kEnd),
        first_(n_, kEnd),
        next_(n_, kEnd),
        previous_(n_, kEnd) {
    queue_.reserve(n_);
  }

  Preflow run() {
    for (int32_t arc = net_.begin[source_]; arc < net_.begin[source_ + 1]; ++arc) {
      excess_[net_.head[arc]] += net_.residual[arc];
      net_.residual[net_.mate[arc]] += net_.residual[arc];
      net_.residual[arc] = 0;
    }
    relabel_all();
    const int64_t patience = 6 * int64_t{n_} + static_cast<int64_t>(net_.head.size()) / 2;
    while (highest_active_ > 0) {
      const int32_t vertex = first_active_[highest_active_];
      if (vertex == kEnd) {
        --highest_active_;
        continue;
      }
      first_active_[highest_active_] = next_active_[vertex];
      discharge(vertex);
      if (work_ > 2 * patience) relabel_all();
    }
    relabel_all();  // labels below n are now those that reach the sink
    Preflow result{excess_[sink_], std::vector<char>(n_), steps_};
    for (int32_t v = 0; v < n_; ++v) result.reaches_sink[v] = label_[v] < n_;
    return result;
  }

 private:
  /// Sets all labels to the distance from the sink, by breadth-first search, and rebuilds the lists.
  void relabel_all() {
    work_ = 0;
    std::fill(label_.begin(), label_.end(), n_);
    std::fill(first_.begin(), first_.end(), kEnd);
    std::fill(first_active_.begin(), first_active_.end(), kEnd);
    highest_ = highest_active_ = 0;
    queue_.assign(1, sink_);
    label_[sink_] = 0;
    for (size_t i = 0; i < queue_.size(); ++i) {
      const int32_t v = queue_[i];
      steps_ += net_.begin[v + 1] - net_.begin[v];
      for (int32_t arc = net_.begin[v]; arc < net_.begin[v + 1]; ++arc) {
        const int32_t u = net_.head[arc];
        if (label_[u] < n_ || u == source_ || net_.residual[net_.mate[arc]] == 0) continue;
        label_[u] = label_[v] + 1;
        queue_.push_back(u);
        enter(u);
        if (excess_[u] > 0) activate(u);
      }
    }
  }

  void enter(int32_t vertex) {
    const int32_t label = label_[vertex];
    arc_[vertex] = net_.begin[vertex];
    previous_[vertex] = kEnd;
    next_[vertex] = first_[label];
    if (first_[label] != kEnd) previous_[first_[label]] = vertex;
    first_[label] = vertex;
    highest_ = std::max(highest_, label);
  }

  void leave(int32_t vertex) {
    if (next_[vertex] != kEnd) previous_[next_[vertex]] = previous_[vertex];
    (previous_[vertex] == kEnd ? first_[label_[vertex]] : next_[previous_[vertex]]) = next_[vertex];
  }

  void activate(int32_t vertex) {
    next_active_[vertex] = first_active_[label_[vertex]];
    first_active_[label_[vertex]] = vertex;
    highest_active_ = std::max(highest_active_, label_[vertex]);
  }

  /// Pushes the excess of `vertex` towards the sink, raising the vertex until no excess or no path remains.
  void discharge(int32_t vertex) {
    while (true) {
      const int32_t end = net_.begin[vertex + 1], below = label_[vertex] - 1;
      const int32_t from = arc_[vertex];
      for (; arc_[vertex] < end; ++arc_[vertex]) {
        const int32_t arc = arc_[vertex], to = net_.head[arc];
        if (net_.residual[arc] == 0 || label_[to] != below) continue;
        const int64_t amount = std::min(excess_[vertex], net_.residual[arc]);
        net_.residual[arc] -= amount;
        net_.residual[net_.mate[arc]] += amount;
        if (excess_[to] == 0 && to != sink_) activate(to);
        excess_[to] += amount;
        excess_[vertex] -= amount;
        if (excess_[vertex] == 0) break;
      }
      steps_ += arc_[vertex] - from;
      work_ += arc_[vertex] - from;
      if (excess_[vertex] == 0 || !raise(vertex)) return;
    }
  }

  /// Gives `vertex` the lowest label that lets it push again; false if there is none.
  bool raise(int32_t vertex) {
    const int32_t old = label_[vertex];
    leave(vertex);
    if (first_[old] == kEnd) {  // the label is now empty, so nothing above it reaches the sink
      drop_above(old);
      label_[vertex] = n_;
      return false;
    }
    int32_t lowest = n_ - 1;
    for (int32_t arc = net_.begin[vertex]; arc < net_.begin[vertex + 1]; ++arc)
      if (net_.residual[arc] > 0) lowest = std::min(lowest, label_[net_.head[arc]]);
    const int32_t looked_at = net_.begin[vertex + 1] - net_.begin[vertex];
    steps_ += looked_at;
    work_ += 12 + looked_at;  // a relabelling costs 12 more than the arcs it visits, as in the paper's program
    label_[vertex] = lowest + 1;
    if (label_[vertex] >= n_) return false;
    enter(vertex);
    return true;
  }

  void drop_above(int32_t label) {
    for (int32_t l = label + 1; l <= highest_; ++l) {
      ++steps_;
      for (int32_t v = first_[l]; v != kEnd; v = next_[v]) {
        label_[v] = n_;
        ++steps_;
      }
      first_[l] = first_active_[l] = kEnd;
    }
    highest_ = label;
  }

  ResidualNetwork& net_;
  const int32_t n_, source_, sink_;
  std::vector<int32_t> label_, arc_;  ///< by vertex; arc_: the next arc to push along
  std::vector<int64_t> excess_;
  // By label: a stack of the vertices with excess, and a doubly linked list of all vertices.
  std::vector<int32_t> first_active_, next_active_, first_, next_, previous_;
  std::vector<int32_t> queue_;
  int32_t highest_ = 0, highest_active_ = 0;
  int64_t work_ = 0, steps_ = 0;
};

}  // namespace

Preflow maximum_preflow(ResidualNetwork& network, int32_t source, int32_t sink) {
  return PushRelabel(network, source, sink).run();
}

}  // namespace plumbline::partition
