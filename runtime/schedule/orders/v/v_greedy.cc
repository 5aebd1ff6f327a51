#include "runtime/schedule/orders/v/v_greedy.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>

#include "runtime/error.h"
#include "runtime/schedule/orders/order.h"
#include "runtime/schedule/orders/timed/measured.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

/// A micro-batch passes each rank twice in each direction: once on its way through the first half of the stages (of the
/// way back), once through the second.
enum Leg { kFirst, kSecond };

constexpr double kNothingToWaitFor = -std::numeric_limits<double>::infinity();

struct VGreedyFrame {
  int ranks = 0;
  int microbatches = 0;
  Durations durations;
  double kept = 0;  ///< of an activation, from I to W
};

/// The authors' names are in brackets.
struct VGreedySwitches {
  bool before_forwards = false;      ///< (fill_f)
  bool before_first_inputs = false;  ///< (fill_b)
};

struct VGreedyOutcome {
  std::vector<std::vector<Action>> orders;
  std::vector<double> waited;  ///< per rank, since its first forward
  double most_waited = 0;
};

class VGreedy {
 public:
  /// `approved` is how long each rank waited in an earlier outcome; empty when there is none.
  VGreedy(const VGreedyFrame& frame, const VGreedySwitches& switches, const std::vector<double>& approved)
      : frame_(frame),
        time_(frame.durations),
        switches_(switches),
        approved_(approved),
        ranks_(frame.ranks),
        forward_ends_(2 * frame.ranks),
        input_ends_(2 * frame.ranks) {
    if (!approved.empty()) most_approved_ = *std::max_element(approved.begin(), approved.end());
  }

  VGreedyOutcome run() && {
    first_descent();
    until_first_input();
    for (int round = 0; round < 2 * frame_.microbatches; ++round) {
      input_on_every_rank();
      forward_on_every_rank();
    }
    VGreedyOutcome outcome;
    outcome.most_waited = most_waited_;
    for (int r = 0; r < frame_.ranks; ++r) {
      while (!ranks_[r].weights.empty()) put_weight(r);
      outcome.orders.push_back(std::move(ranks_[r].order));
      outcome.waited.push_back(ranks_[r].waited);
    }
    return outcome;
  }

 private:
  struct Rank {
    double now = 0;              ///< the end of its last action so far
    double waited = 0;           ///< since its first forward
    int open = 0;                ///< activations between F and I
    std::deque<Action> weights;  ///< the pending weight halves, oldest first
    std::vector<Action> order;
  };

  int stage_of(int r, ActionType type, Leg leg) const {
    return (leg == kFirst) == (type == F) ? r : 2 * frame_.ranks - 1 - r;
  }
  int rank_of(int stage) const { return stage < frame_.ranks ? stage : 2 * frame_.ranks - 1 - stage; }
  std::vector<double>& ends(ActionType type, int stage) {
    return type == F ? forward_ends_[stage] : input_ends_[stage];
  }
  // The number of forwards (input halves) that the rank has executed on that leg: all by ascending micro-batch.
  int done(int r, ActionType type, Leg leg) { return static_cast<int>(ends(type, stage_of(r, type, leg)).size()); }

  // The source of the input of that leg's next action: the stage before or after, if there is one.
  std::optional<int> source(int stage, ActionType type) const {
    const int from = type == F ? stage - 1 : stage + 1;
    if (from < 0 || from == 2 * frame_.ranks) return {};
    return from;
  }

  bool can_do(int r, ActionType type, Leg leg) {
    const int stage = stage_of(r, type, leg), microbatch = done(r, type, leg);
    if (microbatch == frame_.microbatches) return false;
    if (type == I && std::ssize(forward_ends_[stage]) <= microbatch) return false;
    const std::optional<int> from = source(stage, type);
    return !from || std::ssize(ends(type, *from)) > microbatch;
  }

  // When the input arrives from another rank.
  double arrival(int r, ActionType type, Leg leg) {
    const std::optional<int> from = source(stage_of(r, type, leg), type);
    if (!from || rank_of(*from) == r) return kNothingToWaitFor;
    return ends(type, *from)[done(r, type, leg)] + time_.comm;
  }

  // Whether the rank still holds at most 2P activations after `forwards` more forwards.
  bool has_room_for(int r, int forwards) const {
    const double activations = ranks_[r].open + frame_.kept * static_cast<double>(ranks_[r].weights.size());
    return has_room(activations + forwards - 1, 2 * frame_.ranks);
  }

  void put(int r, ActionType type, Leg leg) {
    const int stage = stage_of(r, type, leg), microbatch = done(r, type, leg);
    PLUMBLINE_CHECK(can_do(r, type, leg) && (type == I || has_room_for(r, 1)),
                    "zb-v-greedy: " + to_string(Action{stage, type, microbatch}));
    Rank& rank = ranks_[r];
    const double start = std::max(rank.now, arrival(r, type, leg));
    if (!rank.order.empty()) rank.waited += start - rank.now;
    most_waited_ = std::max(most_waited_, rank.waited);
    rank.now = start + (type == F ? time_.forward : time_.input);
    rank.open += type == F ? 1 : -1;
    rank.order.push_back({stage, type, microbatch});
    ends(type, stage).push_back(rank.now);
    if (type == I) rank.weights.push_back({stage, W, microbatch});
  }

  void put_weight(int r) {
    Rank& rank = ranks_[r];
    rank.now += time_.weight;
    rank.order.push_back(rank.weights.front());
    rank.weights.pop_front();
  }

  // How much longer this rank may wait without becoming the one that waits most, now or (by its share) in the previous
  // outcome.
  double slack(int r) const {
    const double allowed = approved_.empty() ? most_waited_ : std::max(most_waited_, most_approved_ - approved_[r]);
    return allowed - ranks_[r].waited;
  }

  void fill_gap(int r, double until, bool also_too_small) {
    const Rank& rank = ranks_[r];
    while (!rank.weights.empty() && rank.now + time_.weight <= until) put_weight(r);
    if (also_too_small && !rank.weights.empty() && until - rank.now > slack(r)) put_weight(r);
  }

  // The first micro-batch goes down and comes back up the V; the further down it still is, the more forwards of the
  // first leg every rank up to there can execute meanwhile.
  void first_descent() {
    for (int r = 0; r < frame_.ranks; ++r) put(r, F, kFirst);
    for (int r = frame_.ranks - 1; r >= 0; --r) {
      while (r + 1 < frame_.ranks && has_room_for(r, 2 + 2 * r) && can_do(0, F, kFirst) &&
             ranks_[r].now + time_.forward <= arrival(r, F, kSecond)) {
        for (int above = 0; above <= r; ++above) put(above, F, kFirst);
      }
      put(r, F, kSecond);
    }
  }

  // No rank continues to its first input half with fewer forwards than the rank before it.
  void until_first_input() {
    const auto behind = [&](int r) {
      const int first = done(r, F, kFirst), second = done(r, F, kSecond);
      const int before = done(r - 1, F, kFirst), second_before = done(r - 1, F, kSecond);
      return first + second < before + second_before ||
             (second <= second_before && second_before < frame_.microbatches);
    };
    Leg leg = kFirst;
    for (int r = 1; r < frame_.ranks; ++r) {
      while (behind(r)) {
        for (int below = frame_.ranks - 1; below >= r; --below) {
          if (done(below, F, leg) < frame_.microbatches) put(below, F, leg);
        }
        leg = leg == kFirst ? kSecond : kFirst;
      }
    }
  }

  // The leg of the rank's next input half.
  Leg next_input(int r) {
    if (done(r, I, kSecond) == done(r, I, kFirst)) return kFirst;
    if (r + 1 == frame_.ranks || done(r, I, kFirst) == frame_.microbatches) return kSecond;
    return can_do(r, I, kSecond) ? kSecond : kFirst;
  }

  void input_on_every_rank() {
    std::vector<Leg> legs;
    for (int r = 0; r < frame_.ranks; ++r) legs.push_back(next_input(r));
    const auto do_it = [&](int r) {
      fill_gap(r, arrival(r, I, legs[r]), legs[r] == kSecond || switches_.before_first_inputs);
      put(r, I, legs[r]);
    };
    // Second legs run from the last rank to the first, first legs the other way.
    for (int r = frame_.ranks - 1; r >= 0; --r) {
      if (legs[r] == kSecond) do_it(r);
    }
    for (int r = 0; r < frame_.ranks; ++r) {
      if (legs[r] == kFirst) do_it(r);
    }
  }

  std::optional<Leg> next_forward(int r) {
    if (done(r, F, kSecond) == frame_.microbatches) return {};
    if (done(r, F, kSecond) == done(r, F, kFirst)) return kFirst;
    if (r + 1 == frame_.ranks || can_do(r, F, kSecond)) return kSecond;
    if (can_do(r, F, kFirst)) return kFirst;
    return {};
  }

  void forward_on_every_rank() {
    for (int r = 0; r < frame_.ranks; ++r) {
      const std::optional<Leg> leg = next_forward(r);
      if (!leg) continue;
      while (!has_room_for(r, 1) && !ranks_[r].weights.empty()) put_weight(r);
      fill_gap(r, arrival(r, F, *leg), switches_.before_forwards);
      put(r, F, *leg);
    }
  }

  const VGreedyFrame& frame_;
  const Durations& time_;
  const VGreedySwitches switches_;
  const std::vector<double>& approved_;
  double most_approved_ = 0;
  std::vector<Rank> ranks_;
  std::vector<std::vector<double>> forward_ends_, input_ends_;  ///< per stage and micro-batch
  double most_waited_ = 0;                                      ///< of any rank
};

VGreedyOutcome best_outcome(const VGreedyFrame& frame, const VGreedySwitches& switches) {
  VGreedyOutcome best = VGreedy(frame, switches, {}).run();
  while (true) {
    VGreedyOutcome next = VGreedy(frame, switches, best.waited).run();
    if (next.most_waited >= best.most_waited) return best;
    best = std::move(next);
  }
}

}  // namespace

Schedule zb_v_greedy(const ScheduleRequest& request) {
  const VGreedyFrame frame{.ranks = request.ranks,
                           .microbatches = request.microbatches,
                           .durations = measured_durations(request),
                           .kept = kept_for_weights(request)};
  std::optional<VGreedyOutcome> best;
  for (const bool before_first_inputs : {true, false}) {
    for (const bool before_forwards : {true, false}) {
      VGreedyOutcome outcome = best_outcome(frame, {before_forwards, before_first_inputs});
      if (!best || outcome.most_waited < best->most_waited) best = std::move(outcome);
    }
  }
  return assemble(request, v_placement(request), [&](int rank) { return std::move(best->orders[rank]); });
}

}  // namespace plumbline::schedule
