#include "runtime/schedule/orders/timed/zero_bubble_auto.h"

#include <algorithm>
#include <optional>

#include "runtime/error.h"
#include "runtime/schedule/orders/one_stage.h"
#include "runtime/schedule/orders/order.h"
#include "runtime/schedule/orders/timed/measured.h"
#include "runtime/schedule/simulation/simulate.h"

namespace plumbline::schedule {
namespace {

struct Frame {
  int ranks = 0;
  int microbatches = 0;
  Durations durations;
  double limit = 0;  ///< activations
  double kept = 0;   ///< from I to W
};

/// The choices that the greedy order leaves open; the authors' names are in brackets.
struct Switches {
  bool wait_for_first_gradient = false;  ///< no forward that ends after it precedes it (allow_bubble_before_first_b)
  bool hold_forwards_back = false;       ///< a forward yields to a gradient that arrives soon (prioritize_b)
  bool fill_small_gaps = false;          ///< with a W that is longer than they are (no_bubble_greedy)
};

class Greedy {
 public:
  Greedy(const Frame& frame, const Switches& switches)
      : frame_(frame), time_(frame.durations), switches_(switches), ranks_(frame.ranks) {}

  std::vector<std::vector<Action>> orders() && {
    warm_up();
    for (int m = 1; m < frame_.microbatches; ++m) {
      const std::vector<bool> forward = who_does_a_forward();
      for (int r = 0; r < frame_.ranks; ++r) {
        if (forward[r]) forward_with_weights_before(r);
      }
      for (int r = frame_.ranks - 1; r >= 0; --r) input_with_weights_before(r);
    }
    std::vector<std::vector<Action>> orders;
    for (int r = 0; r < frame_.ranks; ++r) {
      while (has_weight(r)) put_weight(r);
      orders.push_back(std::move(ranks_[r].order));
    }
    return orders;
  }

 private:
  struct Rank {
    int forwards = 0, inputs = 0, weights = 0;  ///< executed so far: all by ascending micro-batch
    double now = 0;                             ///< the end of its last action so far
    double waited = 0;                          ///< since its first forward
    std::vector<double> forward_ends, input_ends;
    std::vector<Action> order;
  };

  bool has_weight(int r) const { return ranks_[r].weights < ranks_[r].inputs; }
  bool has_forward(int r) const { return ranks_[r].forwards < frame_.microbatches; }

  double activations(const Rank& rank, int weights) const {
    return rank.forwards - rank.inputs + frame_.kept * (rank.inputs - weights);
  }
  bool has_room_for_forward(int r) const { return has_room(activations(ranks_[r], ranks_[r].weights), frame_.limit); }

  // The earliest start of this rank's next forward (input half) that its neighbour allows.
  double forward_arrival(int r) const {
    return r == 0 ? 0 : ranks_[r - 1].forward_ends.at(ranks_[r].forwards) + time_.comm;
  }
  double input_arrival(int r) const {
    return r == frame_.ranks - 1 ? 0 : ranks_[r + 1].input_ends.at(ranks_[r].inputs) + time_.comm;
  }

  void put(int r, ActionType type, int microbatch, double arrival, double time) {
    Rank& rank = ranks_[r];
    const double start = std::max(rank.now, arrival);
    if (rank.forwards > 0) rank.waited += start - rank.now;
    most_waited_ = std::max(most_waited_, rank.waited);
    rank.now = start + time;
    rank.order.push_back({r, type, microbatch});
  }

  void put_forward(int r) {
    put(r, ActionType::F, ranks_[r].forwards, forward_arrival(r), time_.forward);
    ++ranks_[r].forwards;
    ranks_[r].forward_ends.push_back(ranks_[r].now);
  }

  void put_input(int r) {
    put(r, ActionType::I, ranks_[r].inputs, input_arrival(r), time_.input);
    ++ranks_[r].inputs;
    ranks_[r].input_ends.push_back(ranks_[r].now);
  }

  void put_weight(int r) { put(r, ActionType::W, ranks_[r].weights++, 0, time_.weight); }

  // How many forwards, after its first, each rank executes before its first input half: as many as fit into the memory
  // and into the time until the gradient arrives.
  std::vector<int> extra_forwards() const {
    std::vector<int> extra(frame_.ranks, 0);
    double gradient = ranks_.back().now + time_.input;  // when it reaches the rank after this one
    for (int r = frame_.ranks - 2; r >= 0; --r) {
      const double arrival = gradient + time_.comm;
      double now = ranks_[r].now;
      while (1 + extra[r] < frame_.microbatches && has_room(1 + extra[r], frame_.limit)) {
        if (switches_.wait_for_first_gradient ? now + time_.forward > arrival : now >= arrival) break;
        now += time_.forward;
        ++extra[r];
      }
      gradient = std::max(now, arrival) + time_.input;
    }
    // A rank that is as far as the previous one could only wait for it.
    for (int r = 1; r < frame_.ranks; ++r) {
      if (1 + extra[r] < frame_.microbatches) extra[r] = std::min(extra[r], std::max(0, extra[r - 1] - 1));
    }
    return extra;
  }

  void warm_up() {
    for (int r = 0; r < frame_.ranks; ++r) put_forward(r);
    const std::vector<int> extra = extra_forwards();
    for (int r = 0; r < frame_.ranks; ++r) {
      for (int i = 0; i < extra[r]; ++i) put_forward(r);
    }
    for (int r = frame_.ranks - 1; r >= 0; --r) put_input(r);
  }

  // True when this rank, well ahead of the next one in forwards, should await its next gradient before another forward.
  bool held_back(int r) const {
    const Rank& rank = ranks_[r];
    if (!switches_.hold_forwards_back || r + 1 == frame_.ranks) return false;
    const Rank& next = ranks_[r + 1];
    if (rank.forwards < next.forwards + 2) return false;
    const double gradient = next.now + time_.forward + time_.input + time_.comm;
    if (rank.now >= gradient) return true;
    // Would a forward, with the W that must make room for it, end before that?
    double now = rank.now + time_.forward;
    for (int w = rank.weights; w < rank.inputs && !has_room(activations(rank, w), frame_.limit); ++w) {
      now += time_.weight;
    }
    if (now <= gradient) return false;
    return gradient - rank.now <= most_waited_ - rank.waited;
  }

  std::vector<bool> who_does_a_forward() const {
    std::vector<bool> forward(frame_.ranks);
    for (int r = frame_.ranks - 1; r >= 0; --r) {
      forward[r] = has_forward(r) && !held_back(r) && (r + 1 == frame_.ranks || forward[r + 1]);
    }
    return forward;
  }

  // Inserts W while they fit into the gap until `arrival`; then one that is too long for the rest of it, unless the
  // rank has waited so little that it can afford the gap.
  void fill_gap(int r, double arrival) {
    const Rank& rank = ranks_[r];
    while (has_weight(r) && rank.now + time_.weight <= arrival) put_weight(r);
    if (!has_weight(r) || rank.now >= arrival) return;
    if (arrival - rank.now > most_waited_ - rank.waited || switches_.fill_small_gaps) put_weight(r);
  }

  void forward_with_weights_before(int r) {
    while (has_weight(r) && !has_room_for_forward(r)) put_weight(r);
    PLUMBLINE_CHECK(has_room_for_forward(r), "zb-auto on rank " + std::to_string(r));
    if (r > 0) fill_gap(r, forward_arrival(r));
    put_forward(r);
  }

  void input_with_weights_before(int r) {
    if (r + 1 < frame_.ranks) fill_gap(r, input_arrival(r));
    if (r == 0 && !has_forward(r)) {
      while (has_weight(r)) put_weight(r);
    }
    put_input(r);
  }

  const Frame& frame_;
  const Durations& time_;
  const Switches switches_;
  std::vector<Rank> ranks_;
  double most_waited_ = 0;  ///< of any rank
};

}  // namespace

Schedule zb_auto(const ScheduleRequest& request) {
  const Frame frame{.ranks = request.ranks,
                    .microbatches = request.microbatches,
                    .durations = measured_durations(request),
                    .limit = measured_limit(request),
                    .kept = kept_for_weights(request)};
  std::optional<Schedule> best;
  double least = 0;
  const auto compete = [&](Schedule candidate) {
    const double longest = simulate(candidate, frame.durations).longest_rank;
    if (best && longest >= least) return;
    least = longest;
    best = std::move(candidate);
  };
  for (const bool wait : {true, false}) {
    for (const bool hold_back : {true, false}) {
      for (const bool fill : {true, false}) {
        std::vector<std::vector<Action>> orders = Greedy(frame, {wait, hold_back, fill}).orders();
        compete(assemble(request, looped_placement(request), [&](int rank) { return std::move(orders[rank]); }));
      }
    }
  }
  for (Schedule& by_hand : std::vector<Schedule>{zb_h1(request), zb_h2(request)}) {
    if (has_room(peak_activations(by_hand, frame.kept) - 1, frame.limit)) compete(std::move(by_hand));
  }
  return *std::move(best);
}

}  // namespace plumbline::schedule
