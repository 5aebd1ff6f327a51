#include "runtime/schedule/simulation/critical_path.h"

#include <algorithm>

#include "runtime/error.h"

namespace plumbline::schedule {
namespace {

class Walker {
 public:
  Walker(const Schedule& compute, const Recording& recording) : compute_(compute), recording_(recording) {}

  std::vector<PathStep> walk() {
    Place last{0, 0};
    double makespan = -1;
    for (std::size_t rank = 0; rank < recording_.times.size(); ++rank) {
      const auto& times = recording_.times[rank];
      if (times.empty() || times.back().end <= makespan) continue;
      makespan = times.back().end;
      last = {static_cast<std::int32_t>(rank), static_cast<std::int32_t>(times.size()) - 1};
    }
    int operation = -1;
    for (std::size_t i = 0; i < recording_.operations.size(); ++i) {
      if (recording_.operations[i].end <= makespan) continue;
      makespan = recording_.operations[i].end;
      operation = static_cast<int>(i);
    }
    Place begins = operation < 0 ? through_unit(last) : through_operation(operation);
    while (begins.rank >= 0) begins = before_begin(begins);
    std::reverse(steps_.begin(), steps_.end());
    return std::move(steps_);
  }

 private:
  const TimedAction& at(const Place& place) const { return recording_.times[place.rank][place.position]; }
  const ActionCauses& causes(const Place& place) const { return recording_.actions[place.rank][place.position]; }

  // Adds the members of the unit that ends at `last`, in reverse; returns the unit's beginning.
  Place through_unit(const Place& last) {
    Place place = last;
    const auto& actions = compute_.ranks[place.rank];
    while (true) {
      const TimedAction& timed = at(place);
      if (is_compute(timed.action.type))
        steps_.push_back({PathStep::Kind::Action, timed.action, place.rank, place.rank, timed.begin, timed.end});
      if (place.position == 0 || !actions[place.position - 1].overlaps_next) return place;
      --place.position;
    }
  }

  // From the beginning of a unit to that of the unit it waited for; {-1, -1} at the beginning of the step.
  Place before_begin(const Place& unit) {
    const ActionCauses& cause = causes(unit);
    if (cause.operation >= 0) return through_operation(cause.operation);
    if (cause.message >= 0) return through_message(cause.message);
    if (unit.position == 0) return {};
    const Place previous{unit.rank, unit.position - 1};
    const std::int32_t stalled = causes(previous).stalled;
    return stalled >= 0 ? through_buffer(stalled) : through_unit(previous);
  }

  Place through_operation(std::int32_t number) {
    const OperationTimes& operation = recording_.operations[number];
    const Place& begun = operation.last_begun;
    const bool to_host = is_offload(at(begun).action.type);
    steps_.push_back({to_host ? PathStep::Kind::HostTransfer : PathStep::Kind::Operation, at(begun).action, begun.rank,
                      begun.rank, operation.begin, operation.end});
    return operation.queued_after >= 0 ? through_operation(operation.queued_after) : through_unit(begun);
  }

  Place through_message(std::int32_t number) {
    double until = recording_.transfers[number].end;
    PathStep::Kind kind = PathStep::Kind::Transfer;
    while (true) {
      const Transfer& transfer = recording_.transfers[number];
      const MessageCauses& cause = recording_.messages[number];
      steps_.push_back({kind, transfer.producer, transfer.from_rank, transfer.to_rank, transfer.begin, until});
      if (cause.queued_after < 0)
        return cause.stalled >= 0 ? through_buffer(cause.stalled) : through_unit(end_of(cause));
      until = transfer.begin;
      kind = PathStep::Kind::Queue;
      number = cause.queued_after;
    }
  }

  // To the beginning of the action that consumed a message and thereby let this one go.
  Place through_buffer(std::int32_t number) {
    const Place& taker = recording_.messages[number].freed_by;
    PLUMBLINE_CHECK(taker.rank >= 0, "a message waited for a buffer that no action freed");
    const double time = recording_.transfers[number].sent;
    steps_.push_back(
        {PathStep::Kind::Buffer, at(taker).action, taker.rank, recording_.transfers[number].from_rank, time, time});
    Place first = taker;
    const auto& actions = compute_.ranks[taker.rank];
    while (first.position > 0 && actions[first.position - 1].overlaps_next) --first.position;
    return first;
  }

  // The last member of the producer's unit: messages leave when the whole unit has ended.
  Place end_of(const MessageCauses& cause) const {
    Place place = cause.producer;
    place.position =
        static_cast<std::int32_t>(group_end(compute_.ranks[place.rank], static_cast<std::size_t>(place.position))) - 1;
    return place;
  }

  const Schedule& compute_;
  const Recording& recording_;
  std::vector<PathStep> steps_;
};

}  // namespace

std::vector<PathStep> critical_path(const Schedule& compute, const Recording& recording) {
  return Walker(compute, recording).walk();
}

}  // namespace plumbline::schedule
