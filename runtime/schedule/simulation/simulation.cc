#include "runtime/schedule/simulation/simulation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <unordered_map>

#include "runtime/error.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/collectives.h"
#include "runtime/schedule/simulation/awaited.h"
#include "runtime/schedule/simulation/critical_path.h"
#include "runtime/schedule/simulation/held_memory.h"
#include "runtime/text/counted.h"

namespace plumbline::schedule {
namespace {

// The messages from one rank to another, where they wait for one another.
struct SimulatedChannel {
  struct Take {
    double time;
    Place by;
  };
  double link_free = 0;
  std::int32_t last_message = -1;
  std::int64_t sent = 0, taken = 0;
  std::deque<Take> takes;  // the latest of those `taken`, while a send may still need them
  bool sender_waits = false;
};

struct RankState {
  int position = 0;                              // of the next unit (a group or a single action)
  double free = 0;                               // when the rank can begin it
  const Awaited::Arrivals* waits_for = nullptr;  // messages, or the ranks that have yet to begin an operation
  // The previous unit: its first member with unsent messages, the edge of the next message, and the one that waits.
  int sending = 0;
  std::size_t edge = 0;
  std::int32_t stalled = -1;
};

// False for W and for all that is no computation: they neither take nor make values for other stages.
bool passes_values(const Action& action) { return is_compute(action.type) && action.type != ActionType::W; }

class Loop {
 public:
  Loop(const Schedule& compute, const StageGraph& graph, const SkipTraffic& traffic, const StepCosts& costs,
       const Records& records)
      : compute_(compute),
        graph_(graph),
        traffic_(traffic),
        costs_(costs),
        records_(records),
        forward_only_(!has_backward(compute)),
        keeps_messages_(records.transfers || records.critical_path),
        keeps_times_(records.trace || records.critical_path),
        has_channels_(costs.links.occupied || costs.links.buffers > 0),
        hosts_(has_offload(compute) ? compute.ranks.size() : 0),
        awaited_(compute, graph, forward_only_),
        collectives_(compute),
        operations_(collectives_.operations().size()),
        held_(compute, costs, traffic, records.memory),
        ranks_(compute.ranks.size()) {
    const std::size_t ranks = ranks_.size();
    Timeline& timeline = result_.timeline;
    timeline.busy.assign(ranks, 0);
    timeline.begin.assign(ranks, 0);
    timeline.end.assign(ranks, 0);
    for (std::size_t i = 0; i < operations_.size(); ++i)
      operations_[i].missing = static_cast<std::uint32_t>(collectives_.operations()[i].begun_at.size());
    recording_.operations.resize(operations_.size());
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::size_t actions = compute.ranks[rank].size();
      if (keeps_times_) recording_.times.emplace_back().reserve(actions);
      if (records.critical_path) recording_.actions.emplace_back(actions);
    }
  }

  Simulation run() {
    for (std::size_t rank = ranks_.size(); rank-- > 0;) runnable_.push_back(static_cast<int>(rank));
    while (!runnable_.empty()) {
      const int rank = runnable_.back();
      runnable_.pop_back();
      advance(rank);
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!finished(static_cast<int>(rank))) throw InputError(deadlock(static_cast<int>(rank)));
    }
    held_.finish(result_);
    sum_up();
    if (records_.critical_path) result_.critical_path = critical_path(compute_, recording_);
    if (records_.trace) {
      for (std::vector<TimedAction>& times : recording_.times)
        std::erase_if(times, [](const TimedAction& timed) { return !is_compute(timed.action.type); });
      result_.trace = {"predicted", std::move(recording_.times)};
    }
    if (records_.transfers) result_.transfers = std::move(recording_.transfers);
    return std::move(result_);
  }

 private:
  const std::vector<Action>& actions_of(int rank) const { return compute_.ranks[rank]; }

  bool finished(int rank) const {
    const RankState& state = ranks_[rank];
    return static_cast<std::size_t>(state.position) == actions_of(rank).size() && state.sending == state.position;
  }

  void advance(int rank) {
    RankState& state = ranks_[rank];
    const auto& actions = actions_of(rank);
    while (send_all(rank) && static_cast<std::size_t>(state.position) < actions.size()) {
      const auto end = static_cast<int>(group_end(actions, static_cast<std::size_t>(state.position)));
      double ready = 0;
      ActionCauses causes;
      for (int i = state.position; i < end; ++i) {
        const int operation = collectives_.needed_by(rank, i);
        for (const Awaited::Arrivals* need :
             {awaited_.of(actions[i]), operation < 0 ? nullptr : &operations_[operation]}) {
          if (need == nullptr) continue;
          if (need->missing > 0) {
            state.waits_for = need;
            return;
          }
          if (need->ready <= ready) continue;
          ready = need->ready;
          const bool is_message = operation < 0 || need != &operations_[operation];
          causes.message = is_message ? need->last : -1;
          causes.operation = is_message ? -1 : operation;
        }
        if (hosts_.empty() || !is_compute(actions[i].type)) continue;
        const auto back = reloaded_.find(slot(actions[i]));
        if (back == reloaded_.end() || back->second.ready <= ready) continue;
        ready = back->second.ready;
        causes = {.operation = back->second.last};
      }
      execute(rank, end, std::max(ready, state.free), ready > state.free ? causes : ActionCauses());
    }
  }

  // The unit from the rank's position to `end`.
  void execute(int rank, int end, double start, const ActionCauses& causes) {
    RankState& state = ranks_[rank];
    const auto& actions = actions_of(rank);
    const std::span<const Action> members(actions.data() + state.position, actions.data() + end);
    const double time = time_of(costs_, members);
    if (state.position == 0) result_.timeline.begin[rank] = start;
    if (records_.critical_path) recording_.actions[rank][state.position] = causes;
    if (keeps_times_) record_times(rank, members, start, time);
    if (costs_.links.buffers > 0) {
      for (int i = state.position; i < end; ++i) take(rank, i, start);
    }
    held_.unit(rank, members, start, start + time);
    state.free = start + time;
    state.sending = state.position;
    state.edge = 0;
    state.stalled = -1;
    state.position = end;
    result_.timeline.end[rank] = state.free;
    result_.timeline.busy[rank] += time;
    if (const int operation = collectives_.begun_by(rank, end - 1); operation >= 0)
      begin_operation(operation, {rank, end - 1}, state.free);
    if (is_offload(members.front().type)) transfer_to_host(rank, end - 1, state.free);
  }

  void begin_operation(int number, const Place& place, double time) {
    Awaited::Arrivals& operation = operations_[number];
    OperationTimes& times = recording_.operations[number];
    if (times.last_begun.rank < 0 || time > operation.ready) times.last_begun = place;
    operation.ready = std::max(operation.ready, time);
    if (--operation.missing > 0) return;
    const Collectives::Operation& of = collectives_.operations()[number];
    const Durations& durations = of_stage(costs_.durations, of.stage);
    times.begin = operation.ready;
    operation.ready += of.type == ActionType::UNSHARD ? durations.gather : durations.reduce;
    times.end = operation.ready;
    for (const Place& begun : of.begun_at)
      if (ranks_[begun.rank].waits_for == &operation) wake(begun.rank);
  }

  std::uint64_t slot(const Action& action) const {
    return static_cast<std::uint64_t>(action.stage) * static_cast<std::uint64_t>(compute_.microbatches) +
           static_cast<std::uint64_t>(action.microbatch);
  }

  // The rank reached an OFFLOAD or a RELOAD at `time`.
  void transfer_to_host(int rank, int position, double time) {
    Awaited::Arrivals& host = hosts_[rank];
    const Action& action = actions_of(rank)[position];
    const bool away = action.type == ActionType::OFFLOAD;
    const Durations& durations = of_stage(costs_.durations, action.stage);
    OperationTimes times{.last_begun = {rank, position}};
    times.begin = std::max(time, host.ready);
    if (host.ready > time) times.queued_after = host.last;
    times.end = times.begin + (away ? durations.offload : durations.reload);
    host.ready = times.end;
    host.last = static_cast<std::int32_t>(recording_.operations.size());
    recording_.operations.push_back(times);
    held_.on_host(rank, action, away ? times.end : times.begin);
    if (!away) reloaded_[slot(action)] = host;
  }

  void record_times(int rank, std::span<const Action> members, double start, double time) {
    double sum = 0, done = 0;
    for (const Action& member : members) sum += time_of(costs_, member);
    double begin = start;
    for (std::size_t i = 0; i < members.size(); ++i) {
      done += time_of(costs_, members[i]);
      const double share = sum > 0 ? done / sum : static_cast<double>(i + 1) / static_cast<double>(members.size());
      const double end = i + 1 == members.size() ? start + time : start + time * share;
      recording_.times[rank].push_back({members[i], begin, end});
      begin = end;
    }
  }

  // Sends the results of the last unit; false if a buffer must become free first.
  bool send_all(int rank) {
    RankState& state = ranks_[rank];
    for (; state.sending < state.position; ++state.sending, state.edge = 0) {
      const Action& action = actions_of(rank)[state.sending];
      if (!passes_values(action)) continue;
      const bool forward = action.type == ActionType::F;
      const std::vector<int>& others = forward ? graph_.outputs(action.stage) : graph_.inputs(action.stage);
      for (; state.edge < others.size(); ++state.edge) {
        const int other = others[state.edge];
        const int to_rank = compute_.rank_of(other, action.microbatch);
        if (to_rank != rank && !send(rank, to_rank, action, other)) return false;
      }
    }
    return true;
  }

  bool send(int rank, int to_rank, const Action& action, int to_stage) {
    RankState& state = ranks_[rank];
    const bool forward = action.type == ActionType::F;
    const StageEdge edge = forward ? StageEdge{action.stage, to_stage} : StageEdge{to_stage, action.stage};
    const Link& link = link_of(costs_, rank, to_rank);
    SimulatedChannel* channel = has_channels_ ? &channel_between(rank, to_rank) : nullptr;
    MessageCauses causes;
    causes.producer = {rank, state.sending};
    if (costs_.links.buffers > 0 && !find_buffer(rank, *channel, causes)) return false;
    causes.stalled = state.stalled;
    double begin = state.free;
    const double carrying = traffic_.bytes(edge.from, edge.to) / link.bandwidth;
    if (costs_.links.occupied) {
      if (channel->link_free > begin) {
        begin = channel->link_free;
        causes.queued_after = channel->last_message;
      }
      channel->link_free = begin + carrying;
    }
    const double end = begin + (carrying + latency(costs_, link, action.stage));
    // If the rank had to wait for a buffer, it continues later than it made this.
    const double made = result_.timeline.end[rank];
    if (forward && traffic_.holds()) held_.message(edge, rank, to_rank, made, begin + carrying, end);
    Awaited::Arrivals& need =
        forward ? awaited_.forward(to_stage, action.microbatch) : awaited_.backward(to_stage, action.microbatch);
    if (keeps_messages_) {
      const auto number = static_cast<std::int32_t>(recording_.transfers.size());
      recording_.transfers.push_back({action, to_stage, rank, to_rank, state.free, begin, end});
      recording_.messages.push_back(causes);
      if (channel != nullptr) channel->last_message = number;
      if (need.last < 0 || end > need.ready) need.last = number;
    }
    need.ready = std::max(need.ready, end);
    if (--need.missing == 0 && ranks_[to_rank].waits_for == &need) wake(to_rank);
    return true;
  }

  // Lets a message go as soon as fewer than all buffers are in use; false while that is unknown.
  bool find_buffer(int rank, SimulatedChannel& channel, MessageCauses& causes) {
    RankState& state = ranks_[rank];
    const std::int64_t needed = channel.sent + 1 - costs_.links.buffers;
    if (channel.taken < needed) {
      channel.sender_waits = true;
      return false;
    }
    ++channel.sent;
    if (needed <= 0) return true;
    while (static_cast<std::int64_t>(channel.takes.size()) > channel.taken - needed + 1) channel.takes.pop_front();
    const SimulatedChannel::Take& take = channel.takes.front();
    if (take.time > state.free) {
      state.free = take.time;
      causes.freed_by = take.by;
      state.stalled = static_cast<std::int32_t>(recording_.transfers.size());
      if (records_.critical_path) recording_.actions[rank][state.position - 1].stalled = state.stalled;
    }
    return true;
  }

  void take(int rank, int position, double time) {
    const Action& action = actions_of(rank)[position];
    if (!passes_values(action)) return;
    for (int other : action.type == ActionType::F ? graph_.inputs(action.stage) : graph_.outputs(action.stage)) {
      const int from = compute_.rank_of(other, action.microbatch);
      if (from == rank) continue;
      SimulatedChannel& channel = channel_between(from, rank);
      channel.takes.push_back({time, {rank, position}});
      ++channel.taken;
      if (!channel.sender_waits) continue;
      channel.sender_waits = false;
      wake(from);
    }
  }

  void wake(int rank) {
    ranks_[rank].waits_for = nullptr;
    runnable_.push_back(rank);
  }

  SimulatedChannel& channel_between(int from, int to) {
    return channels_[static_cast<std::uint64_t>(from) * ranks_.size() + static_cast<std::uint64_t>(to)];
  }

  void sum_up() {
    Timeline& t = result_.timeline;
    for (std::size_t i = 0; i < operations_.size(); ++i)
      for (const Place& begun : collectives_.operations()[i].begun_at)
        t.end[begun.rank] = std::max(t.end[begun.rank], operations_[i].ready);
    t.makespan = *std::max_element(t.end.begin(), t.end.end());
    for (std::size_t rank = 0; rank < t.end.size(); ++rank) {
      t.longest_rank = std::max(t.longest_rank, t.end[rank] - t.begin[rank]);
    }
    const double most_memory = *std::max_element(result_.peak_memory.begin(), result_.peak_memory.end());
    if (!std::isfinite(t.makespan) || !std::isfinite(most_memory)) {
      throw InputError("simulate: schedule " + compute_.name +
                       ": its times or its activations add up to more than a number can hold; give smaller ones");
    }
    const double busy = std::accumulate(t.busy.begin(), t.busy.end(), 0.0);
    const auto bubble = [&](double time) { return 1 - busy / (static_cast<double>(t.busy.size()) * time); };
    t.bubble_makespan = bubble(t.makespan);
    t.bubble_longest_rank = bubble(t.longest_rank);
  }

  // The rank that a blocked rank waits for, and the text that explains it.
  std::pair<int, std::string> blocked_by(int rank) const {
    const RankState& state = ranks_[rank];
    const auto& actions = actions_of(rank);
    const std::string at = "rank " + std::to_string(rank) + ", position ";
    if (state.sending < state.position) {
      const Action& action = actions[state.sending];
      const bool forward = action.type == ActionType::F;
      const int other = (forward ? graph_.outputs(action.stage) : graph_.inputs(action.stage))[state.edge];
      const int to = compute_.rank_of(other, action.microbatch);
      return {to, at + std::to_string(state.sending) + " (" + to_string(action) + ") has no free buffer to rank " +
                      std::to_string(to)};
    }
    const auto end = static_cast<int>(group_end(actions, static_cast<std::size_t>(state.position)));
    for (int i = state.position; i < end; ++i) {
      const Action& action = actions[i];
      if (const int number = collectives_.needed_by(rank, i); number >= 0 && operations_[number].missing > 0) {
        for (const Place& begun : collectives_.operations()[number].begun_at) {
          if (ranks_[begun.rank].position > begun.position) continue;
          return {begun.rank, at + std::to_string(i) + " (" + to_string(action) + ") waits for " +
                                  to_string(actions_of(begun.rank)[begun.position]) + " at rank " +
                                  std::to_string(begun.rank) + ", position " + std::to_string(begun.position)};
        }
      }
      if (!passes_values(action)) continue;
      const bool forward = action.type == ActionType::F;
      for (int other : forward ? graph_.inputs(action.stage) : graph_.outputs(action.stage)) {
        const int from = compute_.rank_of(other, action.microbatch);
        const auto& theirs = actions_of(from);
        // Its unsent messages begin at `sending`.
        for (std::size_t j = static_cast<std::size_t>(ranks_[from].sending); from != rank && j < theirs.size(); ++j) {
          const Action& made = theirs[j];
          const bool makes =
              forward ? made.type == ActionType::F : made.type == ActionType::B || made.type == ActionType::I;
          if (!makes || made.stage != other || made.microbatch != action.microbatch) continue;
          return {from, at + std::to_string(i) + " (" + to_string(action) + ") waits for " + to_string(made) +
                            " at rank " + std::to_string(from) + ", position " + std::to_string(j)};
        }
      }
    }
    return {rank, at + std::to_string(state.position) + " stands still"};
  }

  std::string deadlock(int rank) const {
    std::vector<bool> met(ranks_.size());
    for (; !met[rank]; rank = blocked_by(rank).first) met[rank] = true;
    std::string text = "simulate: schedule " + compute_.name + ": deadlock";
    const int buffers = costs_.links.buffers;
    if (buffers > 0) text += " with " + counted(buffers, "buffer") + " a link";
    text += ", a cycle: ";
    const int first = rank;
    do {
      const auto [next, why] = blocked_by(rank);
      text += (rank == first ? "" : "; ") + why;
      rank = next;
    } while (rank != first);
    return text;
  }

  const Schedule& compute_;
  const StageGraph& graph_;
  const SkipTraffic& traffic_;
  const StepCosts& costs_;
  const Records& records_;
  const bool forward_only_, keeps_messages_, keeps_times_, has_channels_;
  // By rank; `last` is an index in Recording::operations. Empty if nothing is offloaded.
  std::vector<Awaited::Arrivals> hosts_;
  std::unordered_map<std::uint64_t, Awaited::Arrivals> reloaded_;  // by slot
  Awaited awaited_;
  const Collectives collectives_;
  std::vector<Awaited::Arrivals> operations_;  // indexed as Collectives::operations(): `missing` ranks
  HeldMemory held_;
  std::vector<RankState> ranks_;
  std::vector<int> runnable_;
  std::unordered_map<std::uint64_t, SimulatedChannel> channels_;
  Recording recording_;
  Simulation result_;
};

}  // namespace

Simulation simulate_step(const Schedule& compute, const std::vector<StageEdge>& edges, const StepCosts& costs,
                         const Records& records) {
  if (has_transport(compute)) {
    throw InputError("simulate: schedule " + compute.name + " has sends and receives; give the compute schedule");
  }
  const bool forward_only = !has_backward(compute);
  const CheckOptions options{.forward_only = forward_only};
  const std::vector<StageEdge> all_edges = with_skips(edges, costs.skips);
  if (!shape_problem(compute).empty()) require_valid(compute, all_edges, options);
  const StageGraph graph(compute.stages, all_edges);
  const bool more_to_check = has_communication(compute) || has_offload(compute);
  if (more_to_check || !is_complete(compute, graph, forward_only)) require_valid(compute, all_edges, options);
  if (!is_complete(compute, graph, forward_only)) {
    PLUMBLINE_CHECK(false, "schedule " + compute.name + " has violations that check.h does not know");
  }
  require_costs(compute, costs);
  return Loop(compute, graph, SkipTraffic(graph, edges, costs), costs, records).run();
}

}  // namespace plumbline::schedule
