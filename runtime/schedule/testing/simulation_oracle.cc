#include "runtime/schedule/testing/simulation_oracle.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

namespace plumbline::testing {
namespace {

using enum schedule::ActionType;

struct Message {
  int from = 0, to = 0;
  std::string made_by, for_stage;
  double carrying = 0, later = 0, there = -1;
};

std::string stage_key(bool forward, int stage, int m) {
  return (forward ? "f" : "b") + std::to_string(stage) + "," + std::to_string(m);
}

// The kinds whose results other stages need.
bool passes_on(const schedule::Action& a) { return a.type == F || a.type == B || a.type == I; }

double own_time(const schedule::StepCosts& costs, const schedule::Action& a) {
  const schedule::Durations& d = costs.durations.size() == 1 ? costs.durations[0] : costs.durations[a.stage];
  if (!passes_on(a) && a.type != W) return 0;
  if (a.type == F) return d.forward;
  if (a.type == B) return d.backward ? *d.backward : d.input + d.weight;
  if (costs.first_stage_defers && a.stage == 0) return a.type == I ? 0 : d.input + d.weight;
  return a.type == I ? d.input : d.weight;
}

// What the ranks with a common stage do together: gather its parameters, sum its gradients.
class Together {
 public:
  Together(const schedule::Schedule& compute, const schedule::StepCosts& costs) : compute_(compute), costs_(costs) {}

  bool ready(int rank, const schedule::Action& a, double now) const {
    const bool waits = a.type == WAIT_REDUCE_GRAD, uses = passes_on(a) || a.type == W || a.type == RESHARD;
    if (!waits && (!uses || open_.count({rank, a.stage}) == 0)) return true;
    const std::string kind = waits ? "D" : "U";
    const auto mine = begun_.find({kind, a.stage, rank});
    if (mine == begun_.end()) return true;
    const auto over = over_.find({kind, a.stage, mine->second});
    return over != over_.end() && over->second <= now;
  }

  void begin(int rank, const schedule::Action& a, double now) {
    if (a.type == RESHARD) open_.erase({rank, a.stage});
    if (a.type == UNSHARD) open_.insert({rank, a.stage});
    if (a.type != UNSHARD && a.type != REDUCE_GRAD) return;
    const std::string kind = a.type == UNSHARD ? "U" : "D";
    const int number = ++begun_[{kind, a.stage, rank}];
    for (std::size_t i = a.stage; i < compute_.rank_of_stage.size(); i += compute_.stages) {
      const auto other = begun_.find({kind, a.stage, compute_.rank_of_stage[i]});
      if (other == begun_.end() || other->second < number) return;
    }
    const schedule::Durations& d = costs_.durations.size() == 1 ? costs_.durations[0] : costs_.durations[a.stage];
    over_[{kind, a.stage, number}] = now + (kind == "U" ? d.gather : d.reduce);
  }

  double last_end() const {
    double last = 0;
    for (const auto& [operation, end] : over_) last = std::max(last, end);
    return last;
  }

 private:
  const schedule::Schedule& compute_;
  const schedule::StepCosts& costs_;
  std::set<std::pair<int, int>> open_;                        // rank and stage
  std::map<std::tuple<std::string, int, int>, int> begun_;    // kind, stage, rank: how many
  std::map<std::tuple<std::string, int, int>, double> over_;  // kind, stage, number: when it ends
};

// The transfers of each rank to and from its host, one at a time.
class Hosts {
 public:
  Hosts(std::size_t ranks, const schedule::StepCosts& costs) : costs_(costs), ranks_(ranks) {}

  void begin(int rank, const schedule::Action& a) {
    if (a.type == OFFLOAD || a.type == RELOAD) ranks_[rank].queue.push_back(a);
  }

  // Whether something began or ended.
  bool advance(double now) {
    bool moved = false;
    for (Host& host : ranks_) {
      while (!host.queue.empty() && host.free <= now) {
        const schedule::Action a = host.queue.front();
        host.queue.pop_front();
        const schedule::Durations& d = costs_.durations.size() == 1 ? costs_.durations[0] : costs_.durations[a.stage];
        host.free = now + (a.type == OFFLOAD ? d.offload : d.reload);
        if (a.type == OFFLOAD) gone[{a.stage, a.microbatch}] = host.free;
        if (a.type == RELOAD) returns[{a.stage, a.microbatch}] = now;
        if (a.type == RELOAD) back_[{a.stage, a.microbatch}] = host.free;
        moved = true;
      }
    }
    return moved;
  }

  // Whether the activations are there, at rank `rank`, for a backward or its half.
  bool ready(int rank, const schedule::Action& a, double now) const {
    if (a.type != B && a.type != I && a.type != W) return true;
    for (const schedule::Action& queued : ranks_[rank].queue) {
      if (queued.stage == a.stage && queued.microbatch == a.microbatch) return false;
    }
    const auto back = back_.find({a.stage, a.microbatch});
    return back == back_.end() || back->second <= now;
  }

  bool busy(double now) const {
    return std::any_of(ranks_.begin(), ranks_.end(),
                       [&](const Host& host) { return !host.queue.empty() || host.free > now; });
  }

  // By stage and micro-batch.
  std::map<std::pair<int, int>, double> gone, returns;

 private:
  struct Host {
    std::deque<schedule::Action> queue;
    double free = 0;
  };
  const schedule::StepCosts& costs_;
  std::vector<Host> ranks_;
  std::map<std::pair<int, int>, double> back_;
};

struct Rank {
  std::deque<std::vector<schedule::Action>> todo;
  std::vector<schedule::Action> doing;
  double until = 0;
  std::deque<Message> outbox;
};

}  // namespace

SlowStep slow_step(const schedule::Schedule& compute, const std::vector<schedule::StageEdge>& given,
                   const schedule::StepCosts& costs) {
  SlowStep result;
  std::vector<schedule::StageEdge> edges = given;
  for (const schedule::Skip& skip : costs.skips) edges.push_back(skip.edge);
  const int count = static_cast<int>(compute.ranks.size());
  std::vector<Rank> ranks(count);
  result.busy.resize(count);
  result.peak_memory.resize(count);
  for (int r = 0; r < count; ++r) {
    bool joined = false;
    for (const schedule::Action& action : compute.ranks[r]) {
      if (!joined) ranks[r].todo.emplace_back();
      ranks[r].todo.back().push_back(action);
      joined = action.overlaps_next;
    }
  }
  const auto place = [&](int stage, int m) {
    const int replica = compute.replica_of_microbatch.empty() ? 0 : compute.replica_of_microbatch[m];
    return compute.rank_of_stage[replica * compute.stages + stage];
  };
  const auto number = [](const auto& list, int stage) { return list.size() == 1 ? list[0] : list[stage]; };
  std::map<std::pair<int, int>, std::deque<Message>> queues;  // sent, not yet on the link
  std::map<std::pair<int, int>, double> link_busy_until;
  std::map<std::pair<int, int>, int> untaken;
  std::vector<Message> flying;
  std::set<std::string> arrived;  // edge, direction, micro-batch
  std::map<std::string, double> held_from, held_to_input, held_to_end;
  std::map<std::string, double> carried_at, there_at;  // keyed as `arrived`

  Together together(compute, costs);
  Hosts hosts(ranks.size(), costs);

  const auto edge_key = [](const schedule::StageEdge& e, bool forward, int m) {
    return stage_key(forward, e.from, m) + ">" + std::to_string(e.to);
  };
  const auto bytes_over = [&](const schedule::StageEdge& e) {
    double bytes = 0;
    if (std::find(given.begin(), given.end(), e) != given.end()) bytes = number(costs.links.bytes, e.from);
    for (const schedule::Skip& skip : costs.skips) bytes += skip.edge == e ? skip.bytes : 0;
    return bytes;
  };
  for (double now = 0;; ++now) {
    bool moved = true, future = false;
    while (moved) {
      moved = false;
      for (int r = 0; r < count; ++r) {
        Rank& rank = ranks[r];
        if (!rank.doing.empty() && rank.until == now) {
          for (const schedule::Action& a : rank.doing) {
            result.end[schedule::to_string(a)] = now;
            const std::string key =
                std::to_string(a.stage) + "," + std::to_string(a.microbatch) + "@" + std::to_string(r);
            if (a.type == I) held_to_input[key] = now;
            if (a.type == B || a.type == W) held_to_end[key] = now;
            if (!passes_on(a)) continue;
            std::vector<schedule::StageEdge> used;
            for (const schedule::StageEdge& e : edges) {
              const bool mine = a.type == F ? e.from == a.stage : e.to == a.stage;
              if (mine && std::find(used.begin(), used.end(), e) == used.end()) used.push_back(e);
            }
            std::sort(used.begin(), used.end(), [](const schedule::StageEdge& x, const schedule::StageEdge& y) {
              return std::pair(x.from, x.to) < std::pair(y.from, y.to);
            });
            for (const schedule::StageEdge& e : used) {
              const int other = place(a.type == F ? e.to : e.from, a.microbatch);
              if (other == r) continue;
              schedule::Link link = costs.links.all;
              if (costs.links.of_ranks.count({r, other})) link = costs.links.of_ranks.at({r, other});
              rank.outbox.push_back({r, other, schedule::to_string(a), edge_key(e, a.type == F, a.microbatch),
                                     bytes_over(e) / link.bandwidth,
                                     link.latency + number(costs.durations, a.stage).comm});
            }
          }
          rank.doing.clear();
          moved = true;
        }
        while (!rank.outbox.empty()) {
          const std::pair<int, int> channel{r, rank.outbox.front().to};
          if (costs.links.buffers > 0 && untaken[channel] >= costs.links.buffers) break;
          ++untaken[channel];
          queues[channel].push_back(rank.outbox.front());
          rank.outbox.pop_front();
          moved = true;
        }
        if (rank.doing.empty() && rank.outbox.empty() && !rank.todo.empty()) {
          std::vector<std::pair<int, int>> taken;
          bool ready = true;
          for (const schedule::Action& a : rank.todo.front()) {
            ready = ready && together.ready(r, a, now) && hosts.ready(r, a, now);
            if (!passes_on(a)) continue;
            std::set<std::string> seen;
            for (const schedule::StageEdge& e : edges) {
              const bool mine = a.type == F ? e.to == a.stage : e.from == a.stage;
              const int other = place(a.type == F ? e.from : e.to, a.microbatch);
              const std::string key = edge_key(e, a.type == F, a.microbatch);
              if (!mine || other == r || !seen.insert(key).second) continue;
              ready = ready && arrived.count(key) > 0;
              taken.emplace_back(other, r);
            }
          }
          if (ready) {
            for (const auto& channel : taken) --untaken[channel];
            rank.doing = rank.todo.front();
            rank.todo.pop_front();
            double time = 0;
            for (const schedule::Action& a : rank.doing) {
              together.begin(r, a, now);
              hosts.begin(r, a);
              time += own_time(costs, a);
              result.begin[schedule::to_string(a)] = now;
              const std::string key =
                  std::to_string(a.stage) + "," + std::to_string(a.microbatch) + "@" + std::to_string(r);
              if (a.type == F) held_from[key] = now;
            }
            if (rank.doing.size() > 1 && costs.group_time) time = costs.group_time(costs, rank.doing, time);
            result.busy[r] += time;
            rank.until = now + time;
            moved = true;
          }
        }
      }
      moved = hosts.advance(now) || moved;
      for (auto& [channel, queue] : queues) {
        while (!queue.empty() && (!costs.links.occupied || link_busy_until[channel] <= now)) {
          Message message = queue.front();
          queue.pop_front();
          link_busy_until[channel] = now + message.carrying;
          message.there = now + message.carrying + message.later;
          carried_at[message.for_stage] = now + message.carrying;
          there_at[message.for_stage] = message.there;
          flying.push_back(message);
          moved = true;
        }
        future = future || !queue.empty();
      }
      for (const Message& message : flying) {
        if (message.there == now && arrived.insert(message.for_stage).second) moved = true;
      }
    }
    bool done = true;
    for (const Rank& rank : ranks) {
      done = done && rank.todo.empty() && rank.doing.empty() && rank.outbox.empty();
      future = future || !rank.doing.empty();
    }
    if (done) break;
    future = future || together.last_end() > now || hosts.busy(now);
    for (const Message& message : flying) future = future || message.there > now;
    for (const auto& [channel, queue] : queues) future = future || !queue.empty();
    if (!future) {
      result.deadlock = true;
      return result;
    }
  }
  result.makespan = together.last_end();
  for (const auto& [action, end] : result.end) result.makespan = std::max(result.makespan, end);
  // Nothing happens between whole numbers: the memory held at this instant is held for the whole unit of time.
  for (double now = 0.5; now < result.makespan; ++now) {
    std::vector<double> held(count);
    for (const auto& [key, from] : held_from) {
      const int stage = std::stoi(key), rank = std::stoi(key.substr(key.find('@') + 1));
      const schedule::StageMemory memory = number(costs.memory, stage);
      if (now < from || (held_to_end.count(key) && now > held_to_end.at(key))) continue;
      const std::pair<int, int> whose{stage, std::stoi(key.substr(key.find(',') + 1))};
      if (hosts.gone.count(whose) && now > hosts.gone.at(whose) && now < hosts.returns.at(whose)) continue;
      const bool input_done = held_to_input.count(key) && now > held_to_input.at(key);
      held[rank] += input_done ? memory.weight_part.value_or(memory.activation) : memory.activation;
    }
    for (const schedule::Skip& skip : costs.skips) {
      const auto [from, to] = skip.edge;
      for (int m = 0; m < compute.microbatches; ++m) {
        const int maker = place(from, m), popper = place(to, m);
        const std::string key = edge_key(skip.edge, true, m), micro = std::to_string(m);
        const double made = result.end.at(std::to_string(from) + "F" + micro);
        const std::string last = schedule::has_backward(compute)
                                     ? std::to_string(to) + "," + micro + "@" + std::to_string(popper)
                                     : std::to_string(to) + "F" + micro;
        const double until = schedule::has_backward(compute) ? held_to_end.at(last) : result.end.at(last);
        const bool input_done = held_to_input.count(last) && now > held_to_input.at(last);
        if (maker != popper && now > made && now < carried_at.at(key)) held[maker] += skip.bytes;
        if (now > (maker == popper ? made : there_at.at(key)) && now < until)
          held[popper] += input_done ? skip.weight_part.value_or(skip.bytes) : skip.bytes;
      }
    }
    for (int r = 0; r < count; ++r) result.peak_memory[r] = std::max(result.peak_memory[r], held[r]);
  }
  return result;
}

}  // namespace plumbline::testing
