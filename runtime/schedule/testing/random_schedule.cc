#include "runtime/schedule/testing/random_schedule.h"

#include <algorithm>
#include <sstream>

namespace plumbline::testing {
namespace {

using enum schedule::ActionType;

int below(std::mt19937& random, std::size_t limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }

// Runs all of `waiting` in random order, whichever can run, and thereby fills the ranks' lists.
void run_at_random(schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges,
                   std::vector<schedule::Action> waiting, bool lowered, bool groups, std::mt19937& random) {
  Texts done;
  while (!waiting.empty()) {
    std::shuffle(waiting.begin(), waiting.end(), random);
    const auto can_run_now = [&](const schedule::Action& action) {
      return can_run(action, schedule, edges, lowered, done);
    };
    const schedule::Action first = *std::find_if(waiting.begin(), waiting.end(), can_run_now);
    std::vector<schedule::Action> unit = {first};
    const int rank = schedule.rank_of(first.stage, first.microbatch);
    const std::size_t size =
        groups && schedule::is_compute(first.type) && below(random, 3) == 0 ? 2 + below(random, 2) : 1;
    for (const schedule::Action& other : waiting) {
      if (unit.size() == size) break;
      if (other == first || !schedule::is_compute(other.type) || !can_run_now(other)) continue;
      if (schedule.rank_of(other.stage, other.microbatch) == rank) unit.push_back(other);
    }
    for (std::size_t i = 0; i < unit.size(); ++i) {
      waiting.erase(std::find(waiting.begin(), waiting.end(), unit[i]));
      done.insert(schedule::to_string(unit[i]));
      unit[i].overlaps_next = i + 1 < unit.size();
      schedule.ranks[rank].push_back(unit[i]);
    }
  }
}

// Positions between two actions that do not share a group: all from `begin` to the end of the list.
std::vector<std::size_t> gaps(const std::vector<schedule::Action>& actions, std::size_t begin, std::size_t end) {
  std::vector<std::size_t> places;
  for (std::size_t i = begin; i <= end; ++i) {
    if (i == 0 || !actions[i - 1].overlaps_next) places.push_back(i);
  }
  return places;
}

void insert(std::vector<schedule::Action>& actions, std::size_t place, int stage, schedule::ActionType type) {
  actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(place), {stage, type, schedule::kNoMicrobatch});
}

void add_windows(std::vector<schedule::Action>& actions, int stage, bool two, std::mt19937& random) {
  const auto of_stage = [&](const schedule::Action& action) {
    return action.stage == stage && schedule::is_compute(action.type);
  };
  const auto first = std::find_if(actions.begin(), actions.end(), of_stage) - actions.begin();
  const auto last = actions.rend() - std::find_if(actions.rbegin(), actions.rend(), of_stage);
  const auto pick = [&](const std::vector<std::size_t>& places) { return places[below(random, places.size())]; };
  const std::size_t close = pick(gaps(actions, std::max(first, last), actions.size()));
  const std::size_t middle = pick(gaps(actions, first, close));
  const std::size_t open = pick(gaps(actions, 0, first));
  insert(actions, close, stage, RESHARD);
  if (two) {
    insert(actions, middle, stage, UNSHARD);
    insert(actions, middle, stage, RESHARD);
  }
  insert(actions, open, stage, UNSHARD);
}

void add_reduction(std::vector<schedule::Action>& actions, int stage, std::mt19937& random) {
  std::size_t end = 0;  // one past the last action that adds to the gradient
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].stage == stage && (actions[i].type == B || actions[i].type == W)) end = i + 1;
  }
  std::vector<std::size_t> places = gaps(actions, end, actions.size());
  const std::size_t reduce = places[below(random, places.size())];
  insert(actions, reduce, stage, REDUCE_GRAD);
  if (below(random, 4) == 0) return;
  places = gaps(actions, reduce + 1, actions.size());
  insert(actions, places[below(random, places.size())], stage, WAIT_REDUCE_GRAD);
}

// All ranks of a stage take part. Where the ranks would then wait for one another, the stage stays as it was.
void add_whole_stages(schedule::Schedule& schedule, const RandomPipe& pipe, std::mt19937& random) {
  const bool windows = below(random, 2) == 0, reductions = !pipe.forward_only && below(random, 2) == 0;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const schedule::Schedule before = schedule;
    const bool gathers = windows && below(random, 3) > 0, twice = below(random, 2) == 0;
    const bool reduces = reductions && below(random, 3) > 0;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      bool held = false;
      for (std::size_t i = stage; i < schedule.rank_of_stage.size(); i += schedule.stages)
        held = held || schedule.rank_of_stage[i] == static_cast<int>(rank);
      if (!held) continue;
      if (gathers) add_windows(schedule.ranks[rank], stage, twice, random);
      if (reduces) add_reduction(schedule.ranks[rank], stage, random);
    }
    if (!schedule.replica_of_microbatch.empty() && !reaches_its_end(schedule, pipe.edges, 0, false)) schedule = before;
  }
}

}  // namespace

RandomPipe random_pipe(std::mt19937& random, const RandomOptions& options) {
  RandomPipe pipe;
  schedule::Schedule& schedule = pipe.compute;
  pipe.forward_only = below(random, 6) == 0;
  const int ranks = 1 + below(random, 4);
  schedule.name = "random";
  schedule.stages = ranks + below(random, 3);
  schedule.microbatches = 1 + below(random, 5);
  schedule.ranks.resize(ranks);
  const auto add_placement = [&] {
    std::vector<int> placement;
    for (int s = 0; s < schedule.stages; ++s) placement.push_back(s < ranks ? s : below(random, ranks));
    std::shuffle(placement.begin(), placement.end(), random);
    schedule.rank_of_stage.insert(schedule.rank_of_stage.end(), placement.begin(), placement.end());
  };
  add_placement();
  if (options.replicas && schedule.microbatches > 1 && below(random, 2) == 0) {
    add_placement();
    for (int m = 1; m < schedule.microbatches; ++m) schedule.replica_of_microbatch.push_back(below(random, 2));
    schedule.replica_of_microbatch.push_back(1);
  }
  for (int s = 1; s < schedule.stages; ++s) {
    pipe.edges.push_back({s - 1, s});
    if (s > 1 && below(random, 3) == 0) pipe.edges.push_back({below(random, s - 1), s});
  }
  std::vector<schedule::Action> waiting;
  for (int s = 0; s < schedule.stages; ++s) {
    for (int m = 0; m < schedule.microbatches; ++m) {
      waiting.push_back({s, F, m});
      if (pipe.forward_only) continue;
      if (below(random, 3) == 0) {
        waiting.push_back({s, I, m});
        waiting.push_back({s, W, m});
      } else {
        waiting.push_back({s, B, m});
      }
    }
  }
  run_at_random(schedule, pipe.edges, std::move(waiting), false, options.groups, random);
  return pipe;
}

schedule::Schedule random_lowered(const RandomPipe& pipe, std::mt19937& random, const RandomOptions& options) {
  schedule::Schedule schedule = pipe.compute;
  std::vector<schedule::Action> waiting;
  for (auto& actions : schedule.ranks) {
    for (schedule::Action action : actions) {
      action.overlaps_next = false;
      waiting.push_back(action);
    }
    actions.clear();
  }
  std::set<std::string> transport;
  for (const schedule::StageEdge& e : pipe.edges) {
    for (int m = 0; m < schedule.microbatches; ++m) {
      if (schedule.rank_of(e.from, m) == schedule.rank_of(e.to, m)) continue;
      const auto add = [&](int stage, schedule::ActionType type) {
        transport.insert(schedule::to_string(schedule::Action{stage, type, m}));
      };
      add(e.from, SEND_F);
      add(e.to, RECV_F);
      if (below(random, 3) == 0) add(e.from, WAIT_SEND_F);
      if (pipe.forward_only) continue;
      add(e.to, SEND_B);
      add(e.from, RECV_B);
      if (below(random, 3) == 0) add(e.to, WAIT_SEND_B);
    }
  }
  for (const std::string& text : transport) waiting.push_back(schedule::parse_action(text));
  run_at_random(schedule, pipe.edges, std::move(waiting), true, options.groups, random);
  add_whole_stages(schedule, pipe, random);
  return schedule;
}

std::string mutate(schedule::Schedule& schedule, std::mt19937& random) {
  if (schedule::action_count(schedule) == 0) return "nothing is left to change";
  std::size_t rank = below(random, schedule.ranks.size());
  while (schedule.ranks[rank].empty()) rank = below(random, schedule.ranks.size());
  auto& actions = schedule.ranks[rank];
  const std::size_t at = below(random, actions.size());
  const auto place = [&](std::size_t i) { return actions.begin() + static_cast<std::ptrdiff_t>(i); };
  const schedule::Action action = actions[at];
  const std::string what =
      "rank " + std::to_string(rank) + " position " + std::to_string(at) + " " + schedule::to_string(action);
  const auto some_microbatch = [&] { return below(random, schedule.microbatches + 1); };
  switch (below(random, 9)) {
    case 0:
      actions.erase(place(at));
      return "drop " + what;
    case 1:
      actions.insert(place(below(random, actions.size() + 1)), action);
      return "duplicate " + what;
    case 2:
      std::swap(actions[at], actions[below(random, actions.size())]);
      return "swap with another " + what;
    case 3:
      std::swap(actions[at], actions[(at + 1) % actions.size()]);
      return "swap with the next " + what;
    case 4: {
      actions.erase(place(at));
      auto& target = schedule.ranks[below(random, schedule.ranks.size())];
      target.insert(target.begin() + static_cast<std::ptrdiff_t>(below(random, target.size() + 1)), action);
      return "move to some rank " + what;
    }
    case 5:
      if (schedule::has_microbatch(action.type)) actions[at].microbatch = some_microbatch();
      return "other micro-batch " + what;
    case 6:
      actions[at].stage = below(random, schedule.stages + 1);
      return "other stage " + what;
    case 7:
      actions[at].overlaps_next = !action.overlaps_next;
      return "join or split " + what;
    default: {
      const schedule::ActionType type = schedule::action_types()[below(random, schedule::action_types().size())];
      actions[at].type = type;
      if (!schedule::has_microbatch(type)) actions[at].microbatch = schedule::kNoMicrobatch;
      if (schedule::has_microbatch(type) && !schedule::has_microbatch(action.type))
        actions[at].microbatch = some_microbatch();
      return "other kind " + what;
    }
  }
}

std::string swap_two(schedule::Schedule& schedule, std::mt19937& random) {
  const std::size_t rank = below(random, schedule.ranks.size());
  auto& actions = schedule.ranks[rank];
  if (actions.empty()) return "nothing";
  const std::size_t at = below(random, actions.size());
  const std::size_t other = below(random, 2) == 0 ? below(random, actions.size()) : (at + 1) % actions.size();
  const auto in_group = [&](std::size_t i) {
    return actions[i].overlaps_next || (i > 0 && actions[i - 1].overlaps_next);
  };
  const bool all_compute = schedule::is_compute(actions[at].type) && schedule::is_compute(actions[other].type);
  if (!all_compute && (in_group(at) || in_group(other))) return "nothing";
  std::swap(actions[at], actions[other]);
  std::swap(actions[at].overlaps_next, actions[other].overlaps_next);  // the groups keep their positions
  return "rank " + std::to_string(rank) + " swap " + std::to_string(at) + " and " + std::to_string(other);
}

std::string show(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges) {
  std::string text;
  for (const auto& actions : schedule.ranks) {
    for (const schedule::Action& action : actions)
      text += schedule::to_string(action) + (action.overlaps_next ? "& " : " ");
    text += "\n";
  }
  for (const schedule::StageEdge& edge : edges)
    text += std::to_string(edge.from) + "->" + std::to_string(edge.to) + " ";
  text += "\nrank of stage:";
  for (int rank : schedule.rank_of_stage) text += " " + std::to_string(rank);
  text += "\nreplica of micro-batch:";
  for (int replica : schedule.replica_of_microbatch) text += " " + std::to_string(replica);
  return text + "\n";
}

schedule::Schedule schedule_of(const std::vector<std::string>& rows, const std::vector<int>& rank_of_stage,
                               int microbatches) {
  schedule::Schedule schedule{"s", static_cast<int>(rank_of_stage.size()), microbatches, rank_of_stage, {}};
  for (const std::string& row : rows) {
    std::vector<schedule::Action>& actions = schedule.ranks.emplace_back();
    std::istringstream words(row);
    for (std::string word; words >> word;) {
      const bool joined = word.back() == '&';
      if (joined) word.pop_back();
      actions.push_back(schedule::parse_action(word));
      actions.back().overlaps_next = joined;
    }
  }
  return schedule;
}

}  // namespace plumbline::testing
