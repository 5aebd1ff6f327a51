#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>

#include "runtime/schedule/lowering/entries.h"
#include "runtime/schedule/lowering/passes.h"

namespace plumbline {
namespace {

using enum ActionType;
using Node = std::int32_t;
constexpr Node kNone = -1;

// A send: where it stands, which receives it needs, and before which action its wait stands.
struct Send {
  Node node = kNone;
  Action action;
  std::vector<Node> receives = {};
  Node wait_before = kNone;  // kNone: at the end of the rank
};

// What must be before what: each rank's order, a send before its receives, and these before what follows the wait for
// that send. All actions but waits are nodes, numbered rank after rank. Waits only move up, so edges are only added:
// the old one follows from the new one and the rank's order.
class Order {
 public:
  explicit Order(const Schedule& schedule, const StageGraph& graph) : schedule_(schedule) {
    number_nodes();
    find_receives(graph);
    place_waits();
    sort();
  }

  const std::vector<Send>& sends() const { return sends_; }
  /// The number of the send that this action, a send or the wait for one, is about.
  int send_of(const Action& action) const { return send_at_[transfer_slot(action)]; }

  bool reaches(Node from, Node to) {
    if (place_[from] > place_[to]) return false;
    explore(from, place_[to]);
    const bool reached = to >= frontier_[rank_of(to)];
    forget();
    return reached;
  }

  /// Moves the wait for a send up to `before`, which must reach none of its receives.
  void move_wait(int number, Node before) {
    Send& send = sends_[number];
    send.wait_before = before;
    for (Node receive : send.receives) {
      if (place_[receive] > place_[before]) move_behind(before, receive);
    }
  }

 private:
  std::size_t transfer_slot(const Action& action) const {
    const bool forward = action.type == SEND_F || action.type == RECV_F || action.type == WAIT_SEND_F;
    return slot(schedule_, action) * 2 + (forward ? 0 : 1);
  }

  int rank_of(Node node) const {
    return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), node) - first_.begin()) - 1;
  }

  void number_nodes() {
    send_at_.assign(std::size_t{2} * schedule_.stages * schedule_.microbatches, kNone);
    Node nodes = 0;
    for (const auto& actions : schedule_.ranks) {
      first_.push_back(nodes);
      for (const Action& action : actions) {
        if (is_wait_send(action.type)) continue;
        if (is_send(action.type)) {
          send_at_[transfer_slot(action)] = static_cast<std::int32_t>(sends_.size());
          sends_.push_back({nodes, action});
        }
        ++nodes;
      }
    }
    first_.push_back(nodes);
    cross_.resize(nodes);
    frontier_.assign(schedule_.ranks.size(), std::numeric_limits<Node>::max());
  }

  void find_receives(const StageGraph& graph) {
    std::vector<Node> receive_at(send_at_.size(), kNone);
    Node node = 0;
    for (const auto& actions : schedule_.ranks) {
      for (const Action& action : actions) {
        if (is_wait_send(action.type)) continue;
        if (is_receive(action.type)) receive_at[transfer_slot(action)] = node;
        ++node;
      }
    }
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      Send& send = sends_[i];
      cross_[send.node].push_back(static_cast<int>(i));
      for_each_peer_stage(schedule_, graph, send.action, [&](int stage) {
        const Action receive = receive_of(send.action, stage);
        const Node receive_node = receive_at[transfer_slot(receive)];
        if (receive_node == kNone) refuse(schedule_, to_string(send.action) + " has no " + to_string(receive));
        send.receives.push_back(receive_node);
        cross_[receive_node].push_back(static_cast<int>(i));
      });
    }
  }

  void place_waits() {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      const auto& actions = schedule_.ranks[rank];
      Node next = first_[rank];
      for (const Action& action : actions) {
        if (is_wait_send(action.type)) {
          sends_[send_of(action)].wait_before = next < first_[rank + 1] ? next : kNone;
        } else {
          ++next;
        }
      }
    }
  }

  // Nodes in an order that all edges keep to, as if all ranks went in step.
  void sort() {
    std::vector<int> waits_for(cross_.size());
    const auto count = [&](int by) { return [&, by](Node node) { waits_for[node] += by; }; };
    for (Node node = 0; node < static_cast<Node>(cross_.size()); ++node) for_each_successor(node, count(1));
    for (Node node = 0; node < static_cast<Node>(cross_.size()); ++node) {
      if (waits_for[node] == 0) node_at_.push_back(node);
    }
    for (std::size_t done = 0; done < node_at_.size(); ++done) {
      for_each_successor(node_at_[done], [&](Node node) {
        if (--waits_for[node] == 0) node_at_.push_back(node);
      });
    }
    if (node_at_.size() != cross_.size()) refuse(schedule_, "its sends, receives and waits form a cycle");
    place_.resize(node_at_.size());
    for (std::size_t i = 0; i < node_at_.size(); ++i) place_[node_at_[i]] = static_cast<int>(i);
  }

  // Of other ranks, or up a wait on this one.
  template <class Visit>
  void for_each_cross_successor(Node node, Visit visit) const {
    for (int number : cross_[node]) {
      const Send& send = sends_[number];
      if (send.node == node) {
        for (Node receive : send.receives) visit(receive);
      } else if (send.wait_before != kNone) {
        visit(send.wait_before);
      }
    }
  }

  template <class Visit>
  void for_each_successor(Node node, Visit visit) const {
    if (node + 1 < first_[rank_of(node) + 1]) visit(node + 1);
    for_each_cross_successor(node, visit);
  }

  // Sets frontier_ to the first node of each rank that `from` reaches, as far as they stand at `limit` or before it.
  void explore(Node from, int limit) {
    const auto reach = [&](Node node) {
      if (place_[node] > limit) return;
      const int rank = rank_of(node);
      Node& frontier = frontier_[rank];
      if (node >= frontier) return;
      if (frontier == std::numeric_limits<Node>::max()) touched_.push_back(rank);
      stretches_.push_back({node, std::min(frontier, first_[rank + 1])});
      frontier = node;
    };
    reach(from);
    while (!stretches_.empty()) {
      const auto [begin, end] = stretches_.back();
      stretches_.pop_back();
      for (Node node = begin; node < end && place_[node] <= limit; ++node) for_each_cross_successor(node, reach);
    }
  }

  void forget() {
    for (int rank : touched_) frontier_[rank] = std::numeric_limits<Node>::max();
    touched_.clear();
  }

  // Restores the order for the new edge receive -> before: what `before` reaches goes behind the receive.
  void move_behind(Node before, Node receive) {
    const int begin = place_[before], end = place_[receive] + 1;
    explore(before, end - 1);
    std::stable_partition(node_at_.begin() + begin, node_at_.begin() + end,
                          [&](Node node) { return node < frontier_[rank_of(node)]; });
    forget();
    for (int i = begin; i < end; ++i) place_[node_at_[i]] = i;
  }

  const Schedule& schedule_;
  std::vector<Node> first_;              // of each rank, and one past the last
  std::vector<Send> sends_;              // rank after rank, in the order of the lists
  std::vector<std::int32_t> send_at_;    // by transfer_slot
  std::vector<std::vector<int>> cross_;  // the sends that a node is, or receives
  std::vector<Node> node_at_;
  std::vector<int> place_;  // of each node in node_at_
  std::vector<Node> frontier_;
  std::vector<int> touched_;
  struct Stretch {
    Node begin, end;
  };
  std::vector<Stretch> stretches_;
};

class Budget {
 public:
  Budget(const Schedule& schedule, const StageGraph& graph, int most)
      : schedule_(schedule), most_(static_cast<std::size_t>(most)), order_(schedule, graph) {}

  std::vector<Action> limited(int rank) {
    std::vector<Action> actions;
    std::set<int> pending, moved;
    for (const Action& action : schedule_.ranks[rank]) {
      if (is_send(action.type)) {
        const int number = order_.send_of(action);
        while (pending.size() >= most_) {
          const int early = pick(pending, rank, number);
          order_.move_wait(early, order_.sends()[number].node);
          actions.push_back(wait_of(early));
          pending.erase(early);
          moved.insert(early);
        }
        pending.insert(number);
      } else if (is_wait_send(action.type)) {
        if (moved.erase(order_.send_of(action))) continue;
        pending.erase(order_.send_of(action));
      }
      actions.push_back(action);
    }
    return actions;
  }

 private:
  Action wait_of(int number) const {
    const Action& send = order_.sends()[number].action;
    return {send.stage, send.type == SEND_F ? WAIT_SEND_F : WAIT_SEND_B, send.microbatch};
  }

  // Which of the pending sends is to be waited for before another one.
  int pick(const std::set<int>& pending, int rank, int next) {
    const Node before = order_.sends()[next].node;
    int may_stall = kNone;
    for (int number : pending) {
      const auto& receives = order_.sends()[number].receives;
      const auto reached = [&](Node receive) { return order_.reaches(before, receive); };
      if (std::any_of(receives.begin(), receives.end(), reached)) continue;
      const auto reaches = [&](Node receive) { return order_.reaches(receive, before); };
      if (std::all_of(receives.begin(), receives.end(), reaches)) return number;
      if (may_stall == kNone) may_stall = number;
    }
    if (may_stall != kNone) return may_stall;
    std::string outstanding;
    for (int number : pending) {
      (outstanding += outstanding.empty() ? "" : ", ") += to_string(order_.sends()[number].action);
    }
    refuse(schedule_, "rank " + std::to_string(rank) + ": max_outstanding_sends of " + std::to_string(most_) +
                          " cannot be kept before " + to_string(order_.sends()[next].action) +
                          (outstanding.empty() ? "" : "; none of " + outstanding + " can be waited for before it"));
  }

  const Schedule& schedule_;
  std::size_t most_;
  Order order_;
};

}  // namespace

Schedule limit_outstanding_sends(const Schedule& schedule, const StageGraph& graph, int most) {
  if (most < 0) {
    throw InputError("max_outstanding_sends is " + std::to_string(most) + "; at least 0 is needed");
  }
  require_send_waits(schedule);
  Budget budget(schedule, graph, most);
  Schedule result = schedule;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    result.ranks[rank] = budget.limited(static_cast<int>(rank));
  }
  return result;
}

}  // namespace plumbline
