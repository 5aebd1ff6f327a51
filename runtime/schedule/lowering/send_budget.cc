#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "runtime/schedule/lowering/entries.h"
#include "runtime/schedule/lowering/passes.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;
using Node = std::int32_t;
constexpr Node kNone = -1;

// A send: its position, and the transfer of its rank before which its wait goes.
struct Send {
  Node node = kNone;
  Action action;
  Node wait_before = kNone;  // kNone: after all of them
};

bool is_transfer(const Action& action) { return is_send(action.type) || is_receive(action.type); }

// Lists of numbers, one for each of `keys` keys, in one array.
class Lists {
 public:
  Lists() = default;
  Lists(std::size_t keys, const std::vector<std::pair<Node, int>>& entries)
      : begin_(keys + 1), values_(entries.size()) {
    for (const auto& [key, value] : entries) ++begin_[key + 1];
    for (std::size_t key = 0; key < keys; ++key) begin_[key + 1] += begin_[key];
    std::vector<int> next(begin_.begin(), begin_.end() - 1);
    for (const auto& [key, value] : entries) values_[next[key]++] = value;
  }
  std::span<const int> operator[](std::size_t key) const {
    return std::span(values_).subspan(begin_[key], begin_[key + 1] - begin_[key]);
  }

 private:
  std::vector<int> begin_, values_;
};

// The order that must hold: each rank's list, a send before its receives, and these before the actions that follow the
// wait for that send. Sends and receives are the nodes, numbered rank after rank; other actions lie between them. Waits
// only move up, so edges are only added: an old one follows from the new one and the rank's order.
class Order {
 public:
  Order(const Schedule& schedule, const StageGraph& graph) : schedule_(schedule) {
    number_nodes();
    find_receives(graph);
    place_waits();
    sort();
  }

  const Send& send(int number) const { return sends_[number]; }
  /// The number of the send that this action is, or waits for.
  int number_of(const Action& action) const { return send_at_[transfer_slot(action)]; }

  /// Selects the rank that the functions below refer to. Linear in the number of all transfers.
  void look_from(int rank) {
    if (sorted_.empty()) sort();
    waits_before_.reset();
    const auto is_here = [&, begin = first_[rank], end = first_[rank + 1]](Node node) {
      return node >= begin && node < end;
    };
    last_before_.assign(nodes_, kNone);
    for (Node node : sorted_) {
      if (is_here(node)) last_before_[node] = node;
      for_each_successor(node,
                         [&](Node next) { last_before_[next] = std::max(last_before_[next], last_before_[node]); });
    }
    first_after_.assign(nodes_, kNever);
    for (auto node = sorted_.rbegin(); node != sorted_.rend(); ++node) {
      Node& first = first_after_[*node];
      for_each_successor(*node, [&](Node next) { first = std::min(first, first_after_[next]); });
      if (is_here(*node)) first = *node;
    }
  }

  /// Whether the rank, waiting for this send before `action`, would wait for something that comes after `action`. The
  /// waits of this rank do not change the answer: the edges that they add end on it.
  bool comes_after(int number, Node action) const {
    const auto receives = receives_of_[number];
    return std::any_of(receives.begin(), receives.end(), [&](Node node) { return last_before_[node] >= action; });
  }

  /// Whether `action` cannot begin before all receives of this send are posted.
  bool comes_before(int number, Node action) const {
    const auto receives = receives_of_[number];
    return std::all_of(receives.begin(), receives.end(), [&](Node node) { return first_after_[node] <= action; });
  }

  /// Inserts the wait for a send before `action`. The actions must ascend from call to call.
  void move_wait(int number, Node action) {
    const bool adds_order = !comes_before(number, action);
    sends_[number].wait_before = action;
    if (!adds_order) return;
    sorted_.clear();
    if (!waits_before_) find_waits();
    std::vector<Node> earlier;
    const auto add = [&](Node node) {
      if (first_after_[node] <= action) return;
      first_after_[node] = action;
      earlier.push_back(node);
    };
    for (Node receive : receives_of_[number]) add(receive);
    while (!earlier.empty()) {
      const Node node = earlier.back();
      earlier.pop_back();
      if (!begins_rank_[node]) add(node - 1);
      for (int send : sends_to_[node]) add(sends_[send].node);
      for (int send : (*waits_before_)[node]) {
        for (Node receive : receives_of_[send]) add(receive);
      }
    }
  }

 private:
  static constexpr Node kNever = std::numeric_limits<Node>::max();

  std::size_t transfer_slot(const Action& action) const {
    const bool forward = action.type == SEND_F || action.type == RECV_F || action.type == WAIT_SEND_F;
    return slot(schedule_, action) * 2 + (forward ? 0 : 1);
  }

  void number_nodes() {
    send_at_.assign(std::size_t{2} * schedule_.stages * schedule_.microbatches, kNone);
    for (const auto& actions : schedule_.ranks) {
      first_.push_back(nodes_);
      for (const Action& action : actions) {
        if (!is_transfer(action)) continue;
        if (is_send(action.type)) {
          send_at_[transfer_slot(action)] = static_cast<int>(sends_.size());
          sends_.push_back({nodes_, action});
        }
        begins_rank_.push_back(nodes_ == first_.back());
        ++nodes_;
      }
    }
    first_.push_back(nodes_);
    begins_rank_.push_back(true);
  }

  void find_receives(const StageGraph& graph) {
    std::vector<Node> receive_at(send_at_.size(), kNone);
    Node node = 0;
    for (const auto& actions : schedule_.ranks) {
      for (const Action& action : actions) {
        if (!is_transfer(action)) continue;
        if (is_receive(action.type)) receive_at[transfer_slot(action)] = node;
        ++node;
      }
    }
    std::vector<std::pair<Node, int>> receives, sends, own;
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      const int number = static_cast<int>(i);
      own.emplace_back(sends_[i].node, number);
      for_each_peer_stage(schedule_, graph, sends_[i].action, [&](int stage) {
        const Action receive = receive_of(sends_[i].action, stage);
        const Node receive_node = receive_at[transfer_slot(receive)];
        if (receive_node == kNone) refuse(schedule_, to_string(sends_[i].action) + " has no " + to_string(receive));
        receives.emplace_back(number, receive_node);
        sends.emplace_back(receive_node, number);
      });
    }
    receives_of_ = Lists(sends_.size(), receives);
    sends_to_ = Lists(nodes_, sends);
    sends_by_ = Lists(nodes_, own);
  }

  void place_waits() {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      Node next = first_[rank];
      for (const Action& action : schedule_.ranks[rank]) {
        if (is_wait_send(action.type)) {
          sends_[number_of(action)].wait_before = next < first_[rank + 1] ? next : kNone;
        } else if (is_transfer(action)) {
          ++next;
        }
      }
    }
  }

  void find_waits() {
    std::vector<std::pair<Node, int>> waits;
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      if (sends_[i].wait_before != kNone) waits.emplace_back(sends_[i].wait_before, static_cast<int>(i));
    }
    waits_before_ = Lists(nodes_, waits);
  }

  template <class Visit>
  void for_each_successor(Node node, Visit visit) const {
    if (!begins_rank_[node + 1]) visit(node + 1);
    for (int number : sends_by_[node]) {
      for (Node receive : receives_of_[number]) visit(receive);
    }
    for (int number : sends_to_[node]) {
      if (sends_[number].wait_before != kNone) visit(sends_[number].wait_before);
    }
  }

  // Sorts the nodes topologically.
  void sort() {
    std::vector<int> missing(nodes_);
    for (Node node = 0; node < nodes_; ++node) for_each_successor(node, [&](Node next) { ++missing[next]; });
    sorted_.clear();
    for (Node node = 0; node < nodes_; ++node) {
      if (missing[node] == 0) sorted_.push_back(node);
    }
    for (std::size_t done = 0; done < sorted_.size(); ++done) {
      for_each_successor(sorted_[done], [&](Node next) {
        if (--missing[next] == 0) sorted_.push_back(next);
      });
    }
    if (sorted_.size() != static_cast<std::size_t>(nodes_)) {
      refuse(schedule_, "its sends, receives and waits form a cycle");
    }
  }

  const Schedule& schedule_;
  Node nodes_ = 0;
  std::vector<Node> first_;            // by rank, and one past the last
  std::vector<char> begins_rank_;      // by node, and one past the last
  std::vector<Send> sends_;            // rank after rank, in the order of the lists
  std::vector<int> send_at_;           // by transfer_slot
  Lists receives_of_;                  // by send
  Lists sends_by_, sends_to_;          // by node: its own send, the sends that it receives
  std::optional<Lists> waits_before_;  // by node: the sends whose waits were before it, if requested
  std::vector<Node> sorted_;           // empty when out of date
  std::vector<Node> last_before_;      // by node: the last one of the selected rank that must be before it, or kNone
  std::vector<Node> first_after_;      // by node: the first one of that rank that must be after it, or kNever
};

std::size_t most_outstanding(const std::vector<Action>& actions) {
  std::size_t outstanding = 0, most = 0;
  for (const Action& action : actions) {
    if (is_send(action.type)) most = std::max(most, ++outstanding);
    if (is_wait_send(action.type)) --outstanding;
  }
  return most;
}

class Budget {
 public:
  Budget(const Schedule& schedule, const StageGraph& graph, int most)
      : schedule_(schedule), most_(static_cast<std::size_t>(most)), order_(schedule, graph) {}

  std::vector<Action> limited(int rank) {
    if (most_outstanding(schedule_.ranks[rank]) <= most_) return schedule_.ranks[rank];
    order_.look_from(rank);
    std::vector<Action> actions;
    std::set<int> pending, moved;
    for (const Action& action : schedule_.ranks[rank]) {
      if (is_send(action.type)) {
        const int number = order_.number_of(action);
        while (pending.size() >= most_) {
          const int early = pick(pending, rank, number);
          order_.move_wait(early, order_.send(number).node);
          actions.push_back(wait_of(early));
          pending.erase(early);
          moved.insert(early);
        }
        pending.insert(number);
      } else if (is_wait_send(action.type)) {
        if (moved.erase(order_.number_of(action))) continue;
        pending.erase(order_.number_of(action));
      }
      actions.push_back(action);
    }
    return actions;
  }

 private:
  Action wait_of(int number) const {
    const Action& send = order_.send(number).action;
    return {send.stage, send.type == SEND_F ? WAIT_SEND_F : WAIT_SEND_B, send.microbatch};
  }

  // The pending send to wait for before another one.
  int pick(const std::set<int>& pending, int rank, int next) {
    const Node before = order_.send(next).node;
    int may_stall = kNone;
    for (int number : pending) {
      if (order_.comes_after(number, before)) continue;
      if (order_.comes_before(number, before)) return number;
      if (may_stall == kNone) may_stall = number;
    }
    if (may_stall != kNone) return may_stall;
    std::string outstanding;
    for (int number : pending) {
      (outstanding += outstanding.empty() ? "" : ", ") += to_string(order_.send(number).action);
    }
    refuse(schedule_, "rank " + std::to_string(rank) + ": max_outstanding_sends of " + std::to_string(most_) +
                          " cannot be kept before " + to_string(order_.send(next).action) +
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

}  // namespace plumbline::schedule
