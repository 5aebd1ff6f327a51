#include "runtime/schedule/orders/v/waves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>

#include "runtime/schedule/orders/order.h"
#include "runtime/schedule/orders/timed/measured.h"
#include "runtime/text/counted.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

struct WaveFrame {
  int ranks = 0;
  int microbatches = 0;
  int under_way = 0;  ///< most micro-batches in flight
  double forward = 0, backward = 0, comm = 0;
  std::vector<int> rank_of_stage = {};
};

/// Which of several ready forwards goes first.
enum class Forwards { kLatestStage, kEarliestStage, kLongestThere };

struct WaveOutcome {
  std::vector<std::vector<Action>> orders;
  double end = 0;  ///< infinite if the times add up to more than a number can hold; then there are no orders
};

class WaveGreedy {
 public:
  WaveGreedy(const WaveFrame& frame, Forwards forwards)
      : frame_(frame),
        forwards_(forwards),
        stages_(static_cast<int>(frame.rank_of_stage.size())),
        stages_of_rank_(frame.ranks),
        free_(frame.ranks, 0),
        forward_ends_(stages_),
        backward_ends_(stages_),
        outcome_{.orders = std::vector<std::vector<Action>>(frame.ranks)} {
    for (int stage = 0; stage < stages_; ++stage) stages_of_rank_[frame.rank_of_stage[stage]].push_back(stage);
  }

  WaveOutcome run() && {
    look_.push({0, 0});
    while (!look_.empty()) {
      const auto [now, rank] = look_.top();
      look_.pop();
      if (now == kNever) return {{}, kNever};
      if (free_[rank] > now) continue;  // it looks again when it is free
      if (const std::optional<Action> action = choose(rank, now)) start(rank, now, *action);
    }
    return std::move(outcome_);
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // When the values of stage `from` for its neighbour `to` arrive.
  double arrival(const std::vector<std::vector<double>>& ends, int from, int to, int microbatch) const {
    if (std::ssize(ends[from]) <= microbatch) return kNever;
    return ends[from][microbatch] + (frame_.rank_of_stage[from] == frame_.rank_of_stage[to] ? 0 : frame_.comm);
  }

  // When the stage's next forward (backward) can begin; kNever while that is unknown.
  double forward_ready(int stage) const {
    const int microbatch = static_cast<int>(forward_ends_[stage].size());
    if (microbatch == frame_.microbatches) return kNever;
    if (stage > 0) return arrival(forward_ends_, stage - 1, stage, microbatch);
    return microbatch < frame_.under_way ? 0 : arrival(backward_ends_, 0, 0, microbatch - frame_.under_way);
  }
  double backward_ready(int stage) const {
    const int microbatch = static_cast<int>(backward_ends_[stage].size());
    if (std::ssize(forward_ends_[stage]) <= microbatch) return kNever;
    if (stage + 1 < stages_) return arrival(backward_ends_, stage + 1, stage, microbatch);
    return forward_ends_[stage][microbatch];
  }

  std::optional<Action> choose(int rank, double now) const {
    std::optional<Action> best;
    std::tuple<double, int> least;  // smaller goes first
    const auto compete = [&](const Action& action, const std::tuple<double, int>& key) {
      if (best && key >= least) return;
      best = action;
      least = key;
    };
    for (const int stage : stages_of_rank_[rank]) {
      const int microbatch = static_cast<int>(backward_ends_[stage].size());
      if (backward_ready(stage) <= now) compete({stage, B, microbatch}, {microbatch, -stage});
    }
    if (best) return best;
    for (const int stage : stages_of_rank_[rank]) {
      const double ready = forward_ready(stage);
      if (ready > now) continue;
      const int microbatch = static_cast<int>(forward_ends_[stage].size());
      const double key = forwards_ == Forwards::kLatestStage     ? -stage
                         : forwards_ == Forwards::kEarliestStage ? stage
                                                                 : ready;
      compete({stage, F, microbatch}, {key, microbatch});
    }
    return best;
  }

  void start(int rank, double now, const Action& action) {
    const bool is_forward = action.type == F;
    const double end = now + (is_forward ? frame_.forward : frame_.backward);
    (is_forward ? forward_ends_ : backward_ends_)[action.stage].push_back(end);
    outcome_.orders[rank].push_back(action);
    outcome_.end = std::max(outcome_.end, end);
    free_[rank] = end;
    look_.push({end, rank});
    const int next = is_forward ? action.stage + 1 : action.stage - 1;
    if (next < 0 || next == stages_ || frame_.rank_of_stage[next] == rank) return;
    look_.push({end + frame_.comm, frame_.rank_of_stage[next]});
  }

  const WaveFrame& frame_;
  const Forwards forwards_;
  const int stages_;
  std::vector<std::vector<int>> stages_of_rank_;
  std::vector<double> free_;                                       ///< per rank: the time from which it is free
  std::vector<std::vector<double>> forward_ends_, backward_ends_;  ///< per stage and micro-batch
  /// The times at which ranks should look for a ready action.
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> look_;
  WaveOutcome outcome_;
};

}  // namespace

Schedule hanayo(const ScheduleRequest& request) {
  if (request.stages_per_rank % 2 != 0) {
    refuse(request, counted(request.stages_per_rank, "stage") + " per rank; a wave goes down the ranks and up again, " +
                        "so an even number is needed");
  }
  constexpr int kMostStages = 1024;  // each action costs a search of all stages of its rank
  if (request.stages_per_rank > kMostStages) {
    refuse(request, counted(request.stages_per_rank, "stage") + " per rank; at most " + std::to_string(kMostStages) +
                        " are accepted");
  }
  const Durations durations = measured_durations(request);
  const WaveFrame frame{.ranks = request.ranks,
                        .microbatches = request.microbatches,
                        .under_way = static_cast<int>(std::min<double>(measured_limit(request), request.microbatches)),
                        .forward = durations.forward,
                        .backward = durations.backward.value_or(durations.input + durations.weight),
                        .comm = durations.comm,
                        .rank_of_stage = v_placement(request)};
  std::optional<WaveOutcome> best;
  for (const Forwards forwards : {Forwards::kLatestStage, Forwards::kEarliestStage, Forwards::kLongestThere}) {
    WaveOutcome outcome = WaveGreedy(frame, forwards).run();
    if (!std::isfinite(outcome.end)) {
      refuse(request, "its times add up to more than a number can hold; give smaller ones");
    }
    if (!best || outcome.end < best->end) best = std::move(outcome);
  }
  return assemble(request, frame.rank_of_stage, [&](int rank) { return std::move(best->orders[rank]); });
}

}  // namespace plumbline::schedule
