#include "runtime/schedule/testing/slow_run.h"

#include <algorithm>
#include <map>
#include <utility>

namespace plumbline::testing {
namespace {

using enum schedule::ActionType;

// From (stage, kind, micro-batch) of an ended action to its rank and its end.
using Ended = std::map<std::tuple<int, schedule::ActionType, int>, std::pair<int, double>>;

double duration_of(const schedule::Action& action, const schedule::Durations& durations) {
  switch (action.type) {
    case F:
      return durations.forward;
    case I:
      return durations.input;
    case W:
      return durations.weight;
    default:
      return durations.backward.value_or(durations.input + durations.weight);
  }
}

class Run {
 public:
  Run(const schedule::Schedule& schedule, const schedule::Durations& durations)
      : schedule_(schedule), durations_(durations) {}

  SlowRun go() {
    const std::size_t ranks = schedule_.ranks.size();
    std::vector<std::size_t> at(ranks);
    std::vector<double> first(ranks, -1), now(ranks);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < ranks; ++r) {
        const auto& actions = schedule_.ranks[r];
        while (at[r] < actions.size()) {
          std::size_t end = at[r] + 1;
          while (end < actions.size() && actions[end - 1].overlaps_next) ++end;
          const std::vector<schedule::Action> group(actions.begin() + static_cast<std::ptrdiff_t>(at[r]),
                                                    actions.begin() + static_cast<std::ptrdiff_t>(end));
          const double start = start_of(group, static_cast<int>(r), now[r]);
          if (start < 0) break;
          double length = 0;
          for (const schedule::Action& action : group) length += duration_of(action, durations_);
          for (const schedule::Action& action : group) end_one(action, static_cast<int>(r), start + length);
          if (first[r] < 0) first[r] = start;
          now[r] = start + length;
          run_.busy += length;
          at[r] = end;
          moved = true;
        }
      }
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      if (at[r] < schedule_.ranks[r].size()) {
        complain("rank " + std::to_string(r) + " waits at " + schedule::to_string(schedule_.ranks[r][at[r]]));
      }
      run_.makespan = std::max(run_.makespan, now[r]);
      run_.longest_rank = std::max(run_.longest_rank, now[r] - std::max(first[r], 0.0));
    }
    return std::move(run_);
  }

  void require_each_once(bool forward_only) {
    std::map<std::tuple<int, schedule::ActionType, int>, int> count;
    for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
      int live = 0, peak = 0;
      for (const schedule::Action& action : schedule_.ranks[r]) {
        const int replica = replica_of(action.microbatch);
        if (schedule_.rank_of_stage[replica * schedule_.stages + action.stage] != static_cast<int>(r)) {
          complain(schedule::to_string(action) + " is on rank " + std::to_string(r));
        }
        ++count[{action.stage, action.type, action.microbatch}];
        if (action.type == F) peak = std::max(peak, ++live);
        if (action.type == B || action.type == W) {
          --live;
          run_.sums.resize(schedule_.rank_of_stage.size());
          run_.sums[replica * schedule_.stages + action.stage].push_back(action.microbatch);
        }
      }
      run_.peak.push_back(peak);
    }
    for (int s = 0; s < schedule_.stages; ++s) {
      for (int m = 0; m < schedule_.microbatches; ++m) {
        const int f = count[{s, F, m}], b = count[{s, B, m}], i = count[{s, I, m}], w = count[{s, W, m}];
        const bool whole = b == 1 && i == 0 && w == 0, halves = b == 0 && i == 1 && w == 1;
        if (f != 1 || (forward_only ? b + i + w != 0 : !whole && !halves)) {
          complain("stage " + std::to_string(s) + ", micro-batch " + std::to_string(m) + ": F " + std::to_string(f) +
                   " B " + std::to_string(b) + " I " + std::to_string(i) + " W " + std::to_string(w));
        }
      }
    }
  }

 private:
  int replica_of(int microbatch) const {
    return schedule_.replica_of_microbatch.empty() ? 0 : schedule_.replica_of_microbatch[microbatch];
  }

  void complain(const std::string& what) {
    if (run_.fault.empty()) run_.fault = what;
  }

  // -1 while a need has not ended; the result of a member of the same group is no external need.
  double start_of(const std::vector<schedule::Action>& group, int rank, double now) const {
    double start = now;
    for (std::size_t n = 0; n < group.size(); ++n) {
      const schedule::Action& a = group[n];
      const auto need = [&](int stage, std::initializer_list<schedule::ActionType> any_of) {
        for (const schedule::ActionType type : any_of) {
          for (std::size_t before = 0; before < n; ++before) {
            if (group[before] == schedule::Action{stage, type, a.microbatch, group[before].overlaps_next}) return;
          }
          const auto found = ended_.find({stage, type, a.microbatch});
          if (found == ended_.end()) continue;
          const auto& [where, when] = found->second;
          if (start >= 0) start = std::max(start, when + (where == rank ? 0 : durations_.comm));
          return;
        }
        start = -1;
      };
      if (a.type == F && a.stage > 0) need(a.stage - 1, {F});
      if (a.type == W) need(a.stage, {I});
      if (a.type == B || a.type == I) {
        need(a.stage, {F});
        if (a.stage + 1 < schedule_.stages) need(a.stage + 1, {B, I});
      }
    }
    return start;
  }

  void end_one(const schedule::Action& action, int rank, double when) {
    ended_[{action.stage, action.type, action.microbatch}] = {rank, when};
  }

  const schedule::Schedule& schedule_;
  const schedule::Durations& durations_;
  Ended ended_;
  SlowRun run_;
};

}  // namespace

SlowRun slow_run(const schedule::Schedule& schedule, const schedule::Durations& durations, bool forward_only) {
  Run run(schedule, durations);
  run.require_each_once(forward_only);
  return run.go();
}

bool SlowRun::sums_ascend() const {
  return std::all_of(sums.begin(), sums.end(), [](const auto& sum) { return std::is_sorted(sum.begin(), sum.end()); });
}

double slow_peak(const schedule::Schedule& schedule, double kept) {
  double peak = 0;
  for (const auto& actions : schedule.ranks) {
    double held = 0;
    for (const schedule::Action& a : actions) {
      held += a.type == F ? 1 : a.type == I ? kept - 1 : a.type == W ? -kept : -1;
      peak = std::max(peak, held);
    }
  }
  return peak;
}

schedule::Durations unit_share(int stages_per_rank, double forward, double input, double weight) {
  const double v = stages_per_rank;
  return {.forward = forward / v, .input = input / v, .weight = weight / v};
}

}  // namespace plumbline::testing
