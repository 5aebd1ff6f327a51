#include "runtime/partition/budget/segments.h"

#include <algorithm>
#include <limits>

namespace plumbline::partition {
namespace {

constexpr int64_t kBlocked = std::numeric_limits<int64_t>::max() / 4;

}  // namespace

ForwardLine::ForwardLine(const PeakModel& model) {
  const JointGraph& graph = model.input().graph;
  const JointEdges& edges = model.input().edges;
  const NodeClasses& classes = model.input().classes;
  nodes_ = static_cast<NodeIndex>(graph.nodes.size());

  // Places count from 1; values that exist from the start are at 0.
  std::vector<int32_t> place(nodes_, 0);
  int32_t places = 0;
  for (NodeIndex i = 0; i < nodes_; ++i)
    if (classes.required_forward[i] && !graph.nodes[i].is_input()) place[i] = ++places;
  std::vector<int32_t> last(nodes_, 0);  // by base: the last forward call that reads it or a view of it
  std::vector<char> read_by_backward(nodes_, 0);
  std::vector<int64_t> delta(places + 2, 0);
  std::vector<int32_t> blocked(places + 2, 0);
  for (NodeIndex i = 0; i < nodes_; ++i) {
    if (place[i] == 0) continue;
    const NodeIndex base = model.base()[i];
    for (const NodeIndex user : edges.users(i)) {
      if (place[user] > 0)
        last[base] = std::max(last[base], place[user]);
      else
        read_by_backward[base] = 1;
      if (graph.nodes[i].multi_output && place[user] > 0) {
        ++blocked[place[i]];
        --blocked[place[user]];
      }
    }
  }
  kept_.assign(places + 1, 0);
  for (NodeIndex i = 0; i < nodes_; ++i) {
    if (place[i] == 0 || model.base()[i] != i || !model.savable()[i]) continue;
    if (read_by_backward[i]) kept_[place[i]] += model.bytes(i);
    if (last[i] <= place[i]) continue;
    lives_.push_back({i, place[i], last[i]});
    delta[place[i]] += model.bytes(i);
    delta[last[i]] -= model.bytes(i);
  }
  crossing_.assign(places + 1, 0);
  int64_t bytes = 0;
  int32_t open = 0;
  for (int32_t p = 1; p <= places; ++p) {
    kept_[p] += kept_[p - 1];
    bytes += delta[p];
    open += blocked[p];
    crossing_[p] = open > 0 ? kBlocked : bytes;
  }
}

std::vector<char> ForwardLine::checkpoints(int64_t limit) const {
  // best[p]: the least bytes crossing at p and at the places before it. Candidates for the place before p are in a
  // queue, ascending in place and in `best`.
  const auto places = static_cast<int32_t>(crossing_.size()) - 1;
  std::vector<int64_t> best(places + 1, 0);
  std::vector<int32_t> before(places + 1, 0), queue(places + 1);
  size_t front = 0, back = 0;
  queue[back++] = 0;
  for (int32_t p = 1; p <= places; ++p) {
    while (front + 1 < back && kept_[p] - kept_[queue[front]] > limit) ++front;
    before[p] = queue[front];
    const int64_t here = p == places ? 0 : crossing_[p];
    best[p] = std::min(kBlocked, best[before[p]] + here);
    if (here == kBlocked) continue;
    while (back > front && best[queue[back - 1]] >= best[p]) --back;
    queue[back++] = p;
  }
  std::vector<char> is_place(places + 2, 0), saved(nodes_, 0);
  for (int32_t p = places > 0 ? before[places] : 0; p > 0; p = before[p]) is_place[p] = 1;
  std::vector<int32_t> next(places + 2, places + 1);  // the first chosen place at or after this one
  for (int32_t p = places; p >= 0; --p) next[p] = is_place[p] ? p : next[p + 1];
  for (const Life& life : lives_)
    if (next[life.begin] < life.end) saved[life.node] = 1;
  return saved;
}

}  // namespace plumbline::partition
