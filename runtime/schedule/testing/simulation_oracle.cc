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
    const bool waits = a.type == WAIT_REDUCE_GRAD, uses = passes_on(a) || a.type == W;
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
            if (rank.doing.size() > 1 && costs.group_time) time = costs.group_time(rank.doing, time);
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

namespace {

// Each stage is gathered from the beginning to the end of the list of each of its ranks, on a single rank sometimes
// twice; and its gradients are summed after its last backward there.
void add_whole_stages(schedule::Schedule& s, std::mt19937& random) {
  const bool reduces = random() % 2 == 0, gathers = !reduces || random() % 2 == 0, at_once = random() % 2 == 0;
  for (auto& actions : s.ranks) {
    std::map<int, std::size_t> last;  // by stage: one past its last action
    for (std::size_t i = 0; i < actions.size(); ++i) last[actions[i].stage] = i + 1;
    std::vector<schedule::Action> made, at_end;
    for (const auto& [stage, end] : last)
      if (gathers) made.push_back({stage, UNSHARD, schedule::kNoMicrobatch});
    for (std::size_t i = 0; i < actions.size(); ++i) {
      made.push_back(actions[i]);
      if (actions[i].overlaps_next) continue;
      for (const auto& [stage, end] : last) {
        // The whole group has ended here.
        const bool here = end == i + 1 || (end <= i && end > 0 && actions[end - 1].overlaps_next &&
                                           std::all_of(actions.begin() + static_cast<std::ptrdiff_t>(end) - 1,
                                                       actions.begin() + static_cast<std::ptrdiff_t>(i),
                                                       [](const schedule::Action& a) { return a.overlaps_next; }));
        if (!here || !reduces) continue;
        made.push_back({stage, REDUCE_GRAD, schedule::kNoMicrobatch});
        (at_once ? made : at_end).push_back({stage, WAIT_REDUCE_GRAD, schedule::kNoMicrobatch});
      }
      if (gathers && s.replica_of_microbatch.empty() && random() % 4 == 0) {
        const int stage = actions[i].stage;
        made.push_back({stage, RESHARD, schedule::kNoMicrobatch});
        made.push_back({stage, UNSHARD, schedule::kNoMicrobatch});
      }
    }
    for (const auto& [stage, end] : last)
      if (gathers) at_end.push_back({stage, RESHARD, schedule::kNoMicrobatch});
    made.insert(made.end(), at_end.begin(), at_end.end());
    actions = std::move(made);
  }
}

// Some activations are away between the F and the next use, or between I and W.
void add_offloads(schedule::Schedule& s, std::mt19937& random) {
  for (auto& actions : s.ranks) {
    for (int stage = 0; stage < s.stages; ++stage) {
      for (int m = 0; m < s.microbatches; ++m) {
        const auto find = [&](schedule::ActionType type) {
          return static_cast<std::size_t>(std::find_if(actions.begin(), actions.end(),
                                                       [&](const schedule::Action& a) {
                                                         return a.stage == stage && a.type == type && a.microbatch == m;
                                                       }) -
                                          actions.begin());
        };
        const bool between_halves = find(I) < actions.size() && random() % 2 == 0;
        const std::size_t first = find(between_halves ? I : F);
        const std::size_t last = std::min(find(between_halves ? W : I), find(between_halves ? W : B));
        if (first == actions.size() || last == actions.size() || random() % 3 == 0) continue;
        std::vector<std::size_t> places;  // after `first`, up to `last`, outside groups
        for (std::size_t i = first + 1; i <= last; ++i)
          if (!actions[i - 1].overlaps_next) places.push_back(i);
        if (places.empty()) continue;
        std::size_t away = places[random() % places.size()], back = places[random() % places.size()];
        if (back < away) std::swap(away, back);
        actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(back), {stage, RELOAD, m});
        actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(away), {stage, OFFLOAD, m});
      }
    }
  }
}

}  // namespace

RandomStep random_step(std::mt19937& random) {
  const auto up_to = [&](int most) { return static_cast<int>(random() % (most + 1)); };
  RandomStep step;
  schedule::Schedule& s = step.compute;
  s.name = "random";
  const int ranks = 1 + up_to(3);
  s.stages = ranks + up_to(6 - ranks);
  s.microbatches = 1 + up_to(4);
  const int replicas = 1 + up_to(1);
  for (int i = 0; i < s.stages * replicas; ++i) s.rank_of_stage.push_back(i < ranks ? i : up_to(ranks - 1));
  std::shuffle(s.rank_of_stage.begin(), s.rank_of_stage.begin() + s.stages, random);
  for (int m = 0; m < s.microbatches && replicas > 1; ++m) s.replica_of_microbatch.push_back(m % 2);
  if (s.microbatches == 1 && replicas > 1) {
    s.rank_of_stage.resize(s.stages);
    s.replica_of_microbatch.clear();
  }
  for (int to = 1; to < s.stages; ++to) {
    step.edges.push_back({to - 1, to});
    if (to > 1 && up_to(3) == 0) step.edges.push_back({up_to(to - 2), to});
  }
  const bool forward_only = up_to(9) == 0;
  std::set<std::string> done;
  std::vector<schedule::Action> left;
  const int halves = up_to(2);  // none, all, some
  for (int stage = 0; stage < s.stages; ++stage) {
    for (int m = 0; m < s.microbatches; ++m) {
      left.push_back({stage, F, m});
      if (forward_only) continue;
      if (halves == 1 || (halves == 2 && up_to(1) == 0)) {
        left.push_back({stage, I, m});
        left.push_back({stage, W, m});
      } else {
        left.push_back({stage, B, m});
      }
    }
  }
  const auto is_done = [&](int stage, const char* kinds, int m) {
    for (const char* kind = kinds; *kind; ++kind) {
      if (done.count(std::to_string(stage) + *kind + std::to_string(m))) return true;
    }
    return false;
  };
  s.ranks.resize(ranks);
  while (!left.empty()) {
    const std::size_t chosen = random() % left.size();
    const schedule::Action a = left[chosen];
    bool can = a.type == F || is_done(a.stage, a.type == W ? "I" : "F", a.microbatch);
    for (const schedule::StageEdge& e : step.edges) {
      if (a.type == F && e.to == a.stage) can = can && is_done(e.from, "F", a.microbatch);
      if ((a.type == I || a.type == B) && e.from == a.stage) can = can && is_done(e.to, "IB", a.microbatch);
    }
    if (!can) continue;
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(chosen));
    done.insert(schedule::to_string(a));
    s.ranks[s.rank_of(a.stage, a.microbatch)].push_back(a);
  }
  if (up_to(2) == 0) {
    for (auto& actions : s.ranks) {
      std::set<int> members;  // of different micro-batches, so that none needs another one
      for (std::size_t i = 0; i + 1 < actions.size(); ++i) {
        members.insert(actions[i].microbatch);
        actions[i].overlaps_next = up_to(3) == 0 && members.count(actions[i + 1].microbatch) == 0;
        if (!actions[i].overlaps_next) members.clear();
      }
    }
  }
  if (!forward_only && up_to(2) == 0) add_whole_stages(s, random);
  schedule::StepCosts& costs = step.costs;
  const auto durations = [&] {
    schedule::Durations d{.forward = 1.0 + up_to(4), .input = 1.0 * up_to(4), .weight = 1.0 * up_to(4), .backward = {}};
    d.comm = up_to(2) * up_to(1);
    if (up_to(1) == 0) d.backward = up_to(7);
    d.gather = up_to(5);
    d.reduce = up_to(5);
    return d;
  };
  costs.durations.clear();
  costs.memory.clear();
  costs.links.bytes.clear();
  const bool each = up_to(1) == 0;
  for (int stage = 0; stage < (each ? s.stages : 1); ++stage) {
    costs.durations.push_back(durations());
    costs.links.bytes.push_back(up_to(3));
    schedule::StageMemory memory{.activation = 1.0 + up_to(9), .weight_part = {}};
    if (up_to(1) == 0) memory.weight_part = up_to(static_cast<int>(memory.activation));
    costs.memory.push_back(memory);
  }
  costs.links.all = {.latency = 1.0 * up_to(3), .bandwidth = up_to(1) == 0 ? 1 : 0.5};
  for (int i = up_to(3); i-- > 0;) {
    costs.links.of_ranks[{up_to(ranks - 1), up_to(ranks - 1)}] = {.latency = 1.0 * up_to(6), .bandwidth = 0.25};
  }
  costs.links.occupied = up_to(1) == 0;
  costs.links.buffers = up_to(1) == 0 ? 0 : 1 + up_to(2);
  costs.first_stage_defers = up_to(1) == 0;
  if (up_to(1) == 0) {
    costs.group_time = [](std::span<const schedule::Action> members, double sum) {
      return static_cast<double>((static_cast<int>(sum) + 1) / 2 + static_cast<int>(members.size()) - 2);
    };
  }
  for (int skips = s.stages > 1 ? up_to(3) * up_to(1) : 0; skips-- > 0;) {
    const int from = up_to(s.stages - 2);
    schedule::Skip& skip =
        costs.skips.emplace_back(schedule::Skip{.edge = {from, from + 1 + up_to(s.stages - 2 - from)}});
    skip.bytes = up_to(4);
    if (up_to(1) == 0) skip.weight_part = up_to(static_cast<int>(skip.bytes));
  }
  if (up_to(2) == 0) {
    add_offloads(s, random);
    for (schedule::Durations& d : costs.durations) {
      d.offload = up_to(4);
      d.reload = up_to(4);
    }
  }
  return step;
}

}  // namespace plumbline::testing
