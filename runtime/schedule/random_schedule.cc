#include "runtime/schedule/random_schedule.h"

#include <algorithm>
#include <set>

namespace plumbline::testing {
namespace {

using enum ActionType;
using Texts = std::multiset<std::string>;

std::string text_of(int stage, const char* kind, int microbatch) {
  return std::to_string(stage) + kind + std::to_string(microbatch);
}

bool among(const Texts& texts, const std::string& text) { return texts.count(text) > 0; }

// The whole or the input half of a backward was done.
bool backward_done(const Texts& done, int stage, int m) {
  return among(done, text_of(stage, "B", m)) || among(done, text_of(stage, "I", m));
}

bool can_run(const Action& a, const Schedule& schedule, const std::vector<StageEdge>& edges, bool lowered,
             const Texts& done) {
  const auto remote = [&](const StageEdge& edge) {
    return lowered && schedule.rank_of_stage[edge.from] != schedule.rank_of_stage[edge.to];
  };
  const int s = a.stage, m = a.microbatch;
  bool ready = true;
  switch (a.type) {
    case F:
      for (const StageEdge& e : edges) {
        if (e.to != s) continue;
        ready = ready && (remote(e) ? among(done, text_of(e.from, "SEND_F", m)) && among(done, text_of(s, "RECV_F", m))
                                    : among(done, text_of(e.from, "F", m)));
      }
      return ready;
    case B:
    case I:
      for (const StageEdge& e : edges) {
        if (e.from != s) continue;
        ready = ready && (remote(e) ? among(done, text_of(e.to, "SEND_B", m)) && among(done, text_of(s, "RECV_B", m))
                                    : backward_done(done, e.to, m));
      }
      return ready && among(done, text_of(s, "F", m));
    case W:
      return among(done, text_of(s, "I", m));
    case SEND_F:
      return among(done, text_of(s, "F", m));
    case SEND_B:
      return backward_done(done, s, m);
    default:
      return true;
  }
}

}  // namespace

bool runs_to_its_end(const Schedule& schedule, const std::vector<StageEdge>& edges, bool forward_only, bool lowered) {
  // Everything that must be there, once; a backward in halves where the schedule has an I for it.
  Texts present;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const Action& action : schedule.ranks[rank]) {
      if (action.stage < 0 || action.stage >= schedule.stages) return false;
      if (schedule.rank_of_stage[action.stage] != static_cast<int>(rank)) return false;
      present.insert(to_string(action));
    }
  }
  std::set<std::string> wanted;
  for (int m = 0; m < schedule.microbatches; ++m) {
    for (int s = 0; s < schedule.stages; ++s) {
      wanted.insert(text_of(s, "F", m));
      if (forward_only) continue;
      const bool halves = among(present, text_of(s, "I", m));
      wanted.insert(text_of(s, halves ? "I" : "B", m));
      if (halves) wanted.insert(text_of(s, "W", m));
    }
    for (const StageEdge& e : edges) {
      if (!lowered || schedule.rank_of_stage[e.from] == schedule.rank_of_stage[e.to]) continue;
      wanted.insert({text_of(e.from, "SEND_F", m), text_of(e.to, "RECV_F", m)});
      if (!forward_only) wanted.insert({text_of(e.to, "SEND_B", m), text_of(e.from, "RECV_B", m)});
    }
  }
  if (!std::equal(present.begin(), present.end(), wanted.begin(), wanted.end())) return false;

  Texts done;
  std::vector<std::size_t> next(schedule.ranks.size());
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      if (next[rank] == schedule.ranks[rank].size()) continue;
      const Action& action = schedule.ranks[rank][next[rank]];
      if (!can_run(action, schedule, edges, lowered, done)) continue;
      done.insert(to_string(action));
      ++next[rank];
      progress = true;
    }
  }
  return done.size() == present.size();
}

RandomPipe random_pipe(std::mt19937& random) {
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  RandomPipe pipe;
  Schedule& schedule = pipe.compute;
  pipe.forward_only = below(6) == 0;
  const int ranks = 1 + below(4);
  schedule.name = "random";
  schedule.stages = ranks + below(3);
  schedule.microbatches = 1 + below(5);
  schedule.ranks.resize(ranks);
  for (int s = 0; s < schedule.stages; ++s) schedule.rank_of_stage.push_back(s < ranks ? s : below(ranks));
  std::shuffle(schedule.rank_of_stage.begin(), schedule.rank_of_stage.end(), random);
  for (int s = 1; s < schedule.stages; ++s) {
    pipe.edges.push_back({s - 1, s});
    if (s > 1 && below(3) == 0) pipe.edges.push_back({below(s - 1), s});
  }
  std::vector<Action> waiting;
  for (int s = 0; s < schedule.stages; ++s) {
    for (int m = 0; m < schedule.microbatches; ++m) {
      waiting.push_back({s, F, m});
      if (pipe.forward_only) continue;
      if (below(3) == 0) {
        waiting.push_back({s, I, m});
        waiting.push_back({s, W, m});
      } else {
        waiting.push_back({s, B, m});
      }
    }
  }
  Texts done;
  while (!waiting.empty()) {
    std::shuffle(waiting.begin(), waiting.end(), random);
    const auto ready = std::find_if(waiting.begin(), waiting.end(), [&](const Action& action) {
      return can_run(action, schedule, pipe.edges, false, done);
    });
    done.insert(to_string(*ready));
    schedule.ranks[schedule.rank_of_stage[ready->stage]].push_back(*ready);
    waiting.erase(ready);
  }
  return pipe;
}

std::string show(const Schedule& schedule, const std::vector<StageEdge>& edges) {
  std::string text;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) text += to_string(action) + " ";
    text += "\n";
  }
  for (const StageEdge& edge : edges) text += std::to_string(edge.from) + "->" + std::to_string(edge.to) + " ";
  return text + "\n";
}

}  // namespace plumbline::testing
