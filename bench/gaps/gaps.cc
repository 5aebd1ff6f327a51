#include "bench/gaps/gaps.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "runtime/error.h"
#include "runtime/median.h"

namespace plumbline::bench {
namespace {

using schedule::Action;
using schedule::ActionType;
using schedule::TimedAction;
using Computations = std::vector<std::vector<TimedAction>>;

/// A computation: its rank, and its index there.
struct At {
  int rank = 0, index = 0;
  bool operator==(const At&) const = default;
};

using Key = std::tuple<ActionType, int, int>;  // kind, stage, micro-batch

double length(const TimedAction& timed) { return timed.end - timed.begin; }

class Step {
 public:
  explicit Step(const Computations& ranks) : ranks_(ranks) {
    for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank)
      for (int index = 0; index < static_cast<int>(ranks[rank].size()); ++index) {
        const Action& action = ranks[rank][index].action;
        where_[{action.type, action.stage, action.microbatch}] = {rank, index};
        stages_ = std::max(stages_, action.stage + 1);
        order_.push_back({rank, index});
      }
    // A computation ends before those that need it begin, so that this order respects the needs.
    std::ranges::stable_sort(order_, {}, [&](const At& at) { return this->at(at).begin; });
  }

  const TimedAction& at(const At& at) const { return ranks_[at.rank][at.index]; }
  const std::vector<At>& order() const { return order_; }

  /// The computation of another stage whose result `timed` needs; nothing for the first stage's forward, the last one's
  /// backward and a W. Where the first stage has no input gradients to compute, its I does nothing, and its W waits.
  std::optional<At> input_of(const TimedAction& timed) const {
    const Action& action = timed.action;
    if (action.type == ActionType::F) return action.stage == 0 ? std::nullopt : found(ActionType::F, action, -1, timed);
    if (action.stage == stages_ - 1) return std::nullopt;
    if (action.type != ActionType::B && (action.type == ActionType::W) != first_stage_defers(action))
      return std::nullopt;
    const Key half = {ActionType::I, action.stage + 1, action.microbatch};
    return found(where_.contains(half) ? ActionType::I : ActionType::B, action, +1, timed);
  }

  /// The idle time before each computation, and at the end of each rank, if the computations in their order took
  /// `lengths` and nothing else took time.
  std::vector<std::vector<double>> gaps_with(const std::vector<std::vector<double>>& lengths) const {
    std::vector<std::vector<double>> gaps(ranks_.size()), ends(ranks_.size());
    double last = 0;
    for (const At& one : order_) {
      std::vector<double>& own = ends[one.rank];
      const double free = own.empty() ? 0 : own.back();
      const std::optional<At> input = input_of(at(one));
      const double begin = std::max(free, input ? ends[input->rank][input->index] : 0);
      gaps[one.rank].push_back(begin - free);
      own.push_back(begin + lengths[one.rank][one.index]);
      last = std::max(last, own.back());
    }
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      gaps[rank].push_back(last - (ends[rank].empty() ? 0 : ends[rank].back()));
    return gaps;
  }

 private:
  /// Whether the I of the first stage began before its input was there.
  bool first_stage_defers(const Action& action) const {
    const auto own = where_.find({ActionType::I, 0, action.microbatch});
    const auto next = where_.find({ActionType::I, 1, action.microbatch});
    return action.stage == 0 && own != where_.end() && next != where_.end() &&
           at(own->second).begin < at(next->second).end;
  }
  std::optional<At> found(ActionType type, const Action& user, int direction, const TimedAction& timed) const {
    const auto it = where_.find({type, user.stage + direction, user.microbatch});
    if (it == where_.end())
      throw InputError("the trace has no computation from which " + to_string(user) + " gets its input");
    if (at(it->second).end > timed.begin)
      throw InputError("in the trace, " + to_string(user) + " begins before " + to_string(at(it->second).action) +
                       " ends, whose result it needs; the clocks of the ranks differ");
    return it->second;
  }

  const Computations& ranks_;
  std::map<Key, At> where_;
  int stages_ = 0;
  std::vector<At> order_;  ///< ascending by begin
};

/// The lengths of the computations, each replaced by the mean or the median of those with the same key.
template <class KeyOf>
std::vector<std::vector<double>> typical_lengths(const Computations& ranks, KeyOf key_of, bool mean) {
  std::map<decltype(key_of(ranks[0][0])), std::vector<double>> groups;
  for (const auto& rank : ranks)
    for (const TimedAction& timed : rank) groups[key_of(timed)].push_back(length(timed));
  std::vector<std::vector<double>> lengths;
  for (const auto& rank : ranks) {
    lengths.emplace_back();
    for (const TimedAction& timed : rank) {
      const std::vector<double>& group = groups.at(key_of(timed));
      lengths.back().push_back(
          mean ? std::accumulate(group.begin(), group.end(), 0.0) / static_cast<double>(group.size()) : median(group));
    }
  }
  return lengths;
}

/// The median idle time before computations that wait for no other rank: what the runtime takes.
double typical_overhead(const Computations& ranks, const Step& step) {
  std::vector<double> gaps;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank)
    for (size_t i = 1; i < ranks[rank].size(); ++i) {
      const std::optional<At> input = step.input_of(ranks[rank][i]);
      if (!input || input->rank == rank) gaps.push_back(ranks[rank][i].begin - ranks[rank][i - 1].end);
    }
  return gaps.empty() ? 0 : std::max(0.0, median(gaps));
}

std::vector<CriticalStep> critical_path(const Step& step, double begin) {
  std::vector<CriticalStep> path;
  At now{};
  for (const At& one : step.order())
    if (step.at(one).end >= step.at(now).end) now = one;
  for (bool first = false; !first;) {
    const TimedAction& timed = step.at(now);
    path.push_back({now.rank, now.index, timed.begin, timed.end, true});
    double from = begin;
    At previous = now;
    if (now.index > 0) previous = {now.rank, now.index - 1}, from = step.at(previous).end;
    if (const std::optional<At> input = step.input_of(timed); input && (previous == now || step.at(*input).end > from))
      previous = *input, from = step.at(previous).end;
    if (from < timed.begin) path.push_back({now.rank, now.index, from, timed.begin, false});
    first = previous == now;
    now = previous;
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace

const char* cause_name(Cause cause) {
  constexpr const char* names[] = {"dependency", "imbalance", "other load", "late message", "overhead", "elsewhere"};
  return names[static_cast<size_t>(cause)];
}

Bubble explain(const schedule::Trace& measured) {
  Bubble bubble;
  bool any = false;
  for (const auto& rank : measured.ranks) {
    bubble.computations.emplace_back();
    for (const TimedAction& timed : rank) {
      if (!schedule::is_compute(timed.action.type)) continue;
      bubble.begin = any ? std::min(bubble.begin, timed.begin) : timed.begin;
      bubble.end = any ? std::max(bubble.end, timed.end) : timed.end;
      any = true;
      bubble.computations.back().push_back(timed);
    }
  }
  if (!any) throw InputError("the trace has no computation");
  const Step step(bubble.computations);
  const auto kind = [](const TimedAction& timed) { return timed.action.type; };
  const auto stage = [](const TimedAction& timed) { return std::pair(timed.action.type, timed.action.stage); };
  const auto one = [](const TimedAction& timed) {
    return Key{timed.action.type, timed.action.stage, timed.action.microbatch};
  };
  const std::vector<std::vector<double>> balanced = step.gaps_with(typical_lengths(bubble.computations, kind, true)),
                                         staged = step.gaps_with(typical_lengths(bubble.computations, stage, false)),
                                         actual = step.gaps_with(typical_lengths(bubble.computations, one, true));
  const double overhead = typical_overhead(bubble.computations, step);
  for (int rank = 0; rank < static_cast<int>(bubble.computations.size()); ++rank) {
    const std::vector<TimedAction>& own = bubble.computations[rank];
    double free = bubble.begin;
    for (int i = 0; i <= static_cast<int>(own.size()); ++i) {
      const bool last = i == static_cast<int>(own.size());
      Gap gap{.rank = rank, .before = i, .begin = free, .end = last ? bubble.end : own[i].begin};
      if (!last) free = own[i].end;
      if (gap.end <= gap.begin) continue;
      const auto take = [&](Cause cause, double amount, double& rest) {
        const double taken = std::clamp(amount, 0.0, rest);
        gap.by[static_cast<size_t>(cause)] += taken;
        rest -= taken;
      };
      const std::optional<At> input = last ? std::nullopt : step.input_of(own[i]);
      const bool remote = input && input->rank != rank;
      // The rank had to wait until `ready`: at the end of the step for the others, else for the input.
      const double ready = last ? gap.end : remote ? std::clamp(step.at(*input).end, gap.begin, gap.end) : gap.begin;
      double wait = ready - gap.begin, way = gap.end - ready;
      take(Cause::Dependency, balanced[rank][i], wait);
      take(Cause::Imbalance, staged[rank][i] - balanced[rank][i], wait);
      take(Cause::OtherLoad, actual[rank][i] - std::max(balanced[rank][i], staged[rank][i]), wait);
      take(Cause::Elsewhere, wait, wait);
      take(Cause::Overhead, remote ? overhead : way, way);
      take(Cause::LateMessage, way, way);
      bubble.gaps.push_back(gap);
    }
  }
  bubble.path = critical_path(step, bubble.begin);
  return bubble;
}

}  // namespace plumbline::bench
