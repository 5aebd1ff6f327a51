#include "runtime/schedule/testing/random_step.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace plumbline::testing {
namespace {

using enum schedule::ActionType;

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
    costs.group_time = [](const schedule::StepCosts&, std::span<const schedule::Action> members, double sum) {
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
