#include "runtime/schedule/testing/schedule_judge.h"

#include <algorithm>
#include <regex>

namespace plumbline::testing {
namespace {

using enum schedule::ActionType;

std::string text_of(int stage, const char* kind, int microbatch) {
  return std::to_string(stage) + kind + std::to_string(microbatch);
}

bool among(const Texts& texts, const std::string& text) { return texts.count(text) > 0; }

int home(const schedule::Schedule& schedule, int stage, int m) {
  const int replica = schedule.replica_of_microbatch.empty() ? 0 : schedule.replica_of_microbatch.at(m);
  return schedule.rank_of_stage.at(replica * schedule.stages + stage);
}

// The whole backward or its input half is done.
bool backward_done(const Texts& done, int stage, int m) {
  return among(done, text_of(stage, "B", m)) || among(done, text_of(stage, "I", m));
}

// The gradient comes from the input half if the schedule has one.
bool gradient_made(const Texts& done, const Texts& all, int stage, int m) {
  const std::string half = text_of(stage, "I", m);
  return among(done, among(all, half) ? half : text_of(stage, "B", m));
}

struct Sent {
  int from, to;  // ranks
  std::string send, receive;
};

std::vector<Sent> messages_of(const schedule::Action& send, const schedule::Schedule& schedule,
                              const std::vector<schedule::StageEdge>& edges) {
  std::set<int> others;  // ascending
  for (const schedule::StageEdge& e : edges) {
    if (send.type == SEND_F && e.from == send.stage) others.insert(e.to);
    if (send.type == SEND_B && e.to == send.stage) others.insert(e.from);
  }
  std::vector<Sent> messages;
  const int rank = home(schedule, send.stage, send.microbatch);
  for (int other : others) {
    const int other_rank = home(schedule, other, send.microbatch);
    if (other_rank == rank) continue;
    const char* kind = send.type == SEND_F ? "RECV_F" : "RECV_B";
    messages.push_back({rank, other_rank, schedule::to_string(send), text_of(other, kind, send.microbatch)});
  }
  return messages;
}

// Each message has its receive, or one of the buffers that earlier messages on its channel leave free.
bool all_complete(const std::vector<Sent>& history, const Texts& done, int buffers, const std::string& send) {
  for (std::size_t i = 0; i < history.size(); ++i) {
    if ((!send.empty() && history[i].send != send) || among(done, history[i].receive)) continue;
    int before = 0;
    for (std::size_t j = 0; j < i; ++j) {
      const bool same_channel = history[j].from == history[i].from && history[j].to == history[i].to;
      if (same_channel && !among(done, history[j].receive)) ++before;
    }
    if (before >= buffers) return false;
  }
  return true;
}

// The life of a stage on a rank as letters: U and R for UNSHARD and RESHARD, D and A for REDUCE_GRAD and its wait, c
// for a computation, b for one that adds to the gradient.
bool whole_stage_in_order(const schedule::Schedule& schedule, int rank, int stage) {
  std::string letters;
  for (const schedule::Action& action : schedule.ranks[rank]) {
    if (action.stage != stage) continue;
    switch (action.type) {
      case UNSHARD:
        letters += 'U';
        break;
      case RESHARD:
        letters += 'R';
        break;
      case REDUCE_GRAD:
        letters += 'D';
        break;
      case WAIT_REDUCE_GRAD:
        letters += 'A';
        break;
      case F:
      case I:
        letters += 'c';
        break;
      case B:
      case W:
        letters += 'b';
        break;
      default:
        break;
    }
  }
  if (letters.find_first_of("URDA") == std::string::npos) return true;
  bool held = false;
  for (std::size_t i = stage; i < schedule.rank_of_stage.size(); i += schedule.stages) {
    held = held || schedule.rank_of_stage[i] == rank;
  }
  static const std::regex no_window("[DA]"), no_sum("[URc]"), in_windows("[cb]*|(U[cb]*R)*"), summed("b*(DA?)?");
  return held && std::regex_match(std::regex_replace(letters, no_window, ""), in_windows) &&
         std::regex_match(std::regex_replace(letters, no_sum, ""), summed);
}

// The number of actions of this kind and stage among the first `end` of the rank's list.
int count_of(const schedule::Schedule& schedule, std::size_t rank, std::size_t end, int stage,
             schedule::ActionType type) {
  int count = 0;
  for (std::size_t i = 0; i < end; ++i) {
    const schedule::Action& action = schedule.ranks[rank][i];
    count += action.type == type && action.stage == stage ? 1 : 0;
  }
  return count;
}

std::set<std::size_t> ranks_with(const schedule::Schedule& schedule, int stage) {
  std::set<std::size_t> ranks;
  for (std::size_t i = stage; i < schedule.rank_of_stage.size(); i += schedule.stages)
    ranks.insert(schedule.rank_of_stage[i]);
  return ranks;
}

// Every rank of a stage gathers and reduces it as often as the others.
bool all_take_part(const schedule::Schedule& schedule) {
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (const schedule::ActionType type : {UNSHARD, REDUCE_GRAD}) {
      std::set<int> counts;
      for (const std::size_t rank : ranks_with(schedule, stage))
        counts.insert(count_of(schedule, rank, schedule.ranks[rank].size(), stage, type));
      if (counts.size() > 1) return false;
    }
  }
  return true;
}

// Whether all ranks of the stage have begun the gathering, or the sum, that the rank's action at `position` needs;
// `next` are the ranks' positions.
bool others_have_begun(const schedule::Schedule& schedule, std::size_t rank, std::size_t position,
                       const std::vector<std::size_t>& next) {
  const schedule::Action& action = schedule.ranks[rank][position];
  const bool gathered =
      action.type == RESHARD || std::string("FBIW").find(schedule::to_string(action.type)) != std::string::npos;
  if ((!gathered && action.type != WAIT_REDUCE_GRAD) || action.stage < 0 || action.stage >= schedule.stages)
    return true;
  const auto before = [&](schedule::ActionType type) { return count_of(schedule, rank, position, action.stage, type); };
  if (gathered && before(UNSHARD) == before(RESHARD)) return true;
  const schedule::ActionType type = gathered ? UNSHARD : REDUCE_GRAD;
  for (const std::size_t other : ranks_with(schedule, action.stage))
    if (count_of(schedule, other, next[other], action.stage, type) < before(type)) return false;
  return true;
}

// The send of a wait: 0SEND_F1 for 0WAIT_SEND_F1.
std::string send_of(std::string wait) { return wait.erase(wait.find("WAIT_"), 5); }

bool groups_well_formed(const std::vector<schedule::Action>& actions) {
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const bool joined = actions[i].overlaps_next || (i > 0 && actions[i - 1].overlaps_next);
    if (joined && std::string("FBIW").find(schedule::to_string(actions[i].type)) == std::string::npos) return false;
  }
  return actions.empty() || !actions.back().overlaps_next;
}

bool can_run_among(const schedule::Action& a, const schedule::Schedule& schedule,
                   const std::vector<schedule::StageEdge>& edges, bool lowered, const Texts& done, const Texts* all) {
  const int s = a.stage, m = a.microbatch;
  const auto remote = [&](const schedule::StageEdge& e) {
    return lowered && home(schedule, e.from, m) != home(schedule, e.to, m);
  };
  const auto gradient = [&](int stage) {
    return all ? gradient_made(done, *all, stage, m) : backward_done(done, stage, m);
  };
  bool ready = true;
  switch (a.type) {
    case F:
      for (const schedule::StageEdge& e : edges) {
        if (e.to != s) continue;
        ready = ready && (remote(e) ? among(done, text_of(e.from, "SEND_F", m)) && among(done, text_of(s, "RECV_F", m))
                                    : among(done, text_of(e.from, "F", m)));
      }
      return ready;
    case B:
    case I:
      for (const schedule::StageEdge& e : edges) {
        if (e.from != s) continue;
        ready = ready && (remote(e) ? among(done, text_of(e.to, "SEND_B", m)) && among(done, text_of(s, "RECV_B", m))
                                    : gradient(e.to));
      }
      return ready && among(done, text_of(s, "F", m));
    case W:
      return among(done, text_of(s, "I", m));
    case SEND_F:
      return among(done, text_of(s, "F", m));
    case SEND_B:
      return gradient(s);
    case WAIT_SEND_F:
    case WAIT_SEND_B: {
      const schedule::Action send{s, a.type == WAIT_SEND_F ? SEND_F : SEND_B, m};
      for (const Sent& message : messages_of(send, schedule, edges)) ready = ready && among(done, message.receive);
      return ready && among(done, schedule::to_string(send));
    }
    default:
      return true;
  }
}

}  // namespace

bool can_run(const schedule::Action& action, const schedule::Schedule& schedule,
             const std::vector<schedule::StageEdge>& edges, bool lowered, const Texts& done) {
  return can_run_among(action, schedule, edges, lowered, done, nullptr);
}

bool is_lowered(const schedule::Schedule& schedule) {
  for (const auto& actions : schedule.ranks) {
    for (const schedule::Action& action : actions) {
      const std::string text = schedule::to_string(action);
      if (text.find("SEND") != std::string::npos || text.find("RECV") != std::string::npos) return true;
    }
  }
  return false;
}

bool is_complete(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges, bool forward_only,
                 bool lowered) {
  // Everything that must appear, once; a backward in halves if the schedule has an I for it.
  Texts present, waits;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    if (!groups_well_formed(schedule.ranks[rank])) return false;
    for (int stage = 0; stage < schedule.stages; ++stage) {
      if (!whole_stage_in_order(schedule, static_cast<int>(rank), stage)) return false;
    }
    for (const schedule::Action& action : schedule.ranks[rank]) {
      if (action.stage < 0 || action.stage >= schedule.stages) return false;
      const std::string text = schedule::to_string(action);
      if (text.find("SHARD") != std::string::npos) continue;
      if (text.find("REDUCE") != std::string::npos) {
        if (forward_only) return false;
        continue;
      }
      if (action.microbatch < 0 || action.microbatch >= schedule.microbatches) return false;
      if (home(schedule, action.stage, action.microbatch) != static_cast<int>(rank)) return false;
      (text.find("WAIT") == std::string::npos ? present : waits).insert(text);
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
    for (const schedule::StageEdge& e : edges) {
      if (!lowered || home(schedule, e.from, m) == home(schedule, e.to, m)) continue;
      wanted.insert({text_of(e.from, "SEND_F", m), text_of(e.to, "RECV_F", m)});
      if (!forward_only) wanted.insert({text_of(e.to, "SEND_B", m), text_of(e.from, "RECV_B", m)});
    }
  }
  if (!all_take_part(schedule)) return false;
  for (const std::string& wait : waits) {
    const std::string send = send_of(wait);
    if (waits.count(wait) > 1 || !wanted.contains(send)) return false;
  }
  return std::equal(present.begin(), present.end(), wanted.begin(), wanted.end());
}

bool reaches_its_end(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges, int buffers,
                     bool blocking) {
  const bool lowered = is_lowered(schedule);
  Texts all, done;
  for (const auto& actions : schedule.ranks) {
    for (const schedule::Action& action : actions) all.insert(schedule::to_string(action));
  }
  std::vector<Sent> history;  // in the order of sending
  std::vector<std::size_t> next(schedule.ranks.size());
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      const auto& actions = schedule.ranks[rank];
      if (next[rank] == actions.size()) continue;
      std::vector<schedule::Action> group = {actions[next[rank]]};
      while (group.back().overlaps_next) group.push_back(actions[next[rank] + group.size()]);
      const schedule::Action& first = group.front();
      const std::string text = schedule::to_string(first);
      const bool is_wait = first.type == WAIT_SEND_F || first.type == WAIT_SEND_B;
      const bool sends = first.type == SEND_F || first.type == SEND_B;
      bool ready = true;
      for (std::size_t i = 0; i < group.size(); ++i)
        ready = ready && others_have_begun(schedule, rank, next[rank] + i, next);
      for (const schedule::Action& member : group) {
        ready = ready &&
                (is_wait ? among(done, send_of(text)) : can_run_among(member, schedule, edges, lowered, done, &all));
      }
      if (!ready) continue;
      if (sends && !among(done, text)) {
        done.insert(text);  // it has begun; whether the rank may leave it is another matter
        for (const Sent& message : messages_of(first, schedule, edges)) history.push_back(message);
        progress = true;
      }
      const std::string awaited = is_wait && !blocking ? send_of(text) : sends && blocking ? text : "";
      if (!awaited.empty() && !all_complete(history, done, buffers, awaited)) continue;
      if (!sends) {
        for (const schedule::Action& member : group) done.insert(schedule::to_string(member));
      }
      next[rank] += group.size();
      progress = true;
    }
  }
  for (std::size_t rank = 0; rank < next.size(); ++rank) {
    if (next[rank] < schedule.ranks[rank].size()) return false;
  }
  return all_complete(history, done, buffers, "");
}

bool runs_to_its_end(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges,
                     bool forward_only, bool lowered) {
  return is_complete(schedule, edges, forward_only, lowered) && reaches_its_end(schedule, edges, 0, false);
}

bool keeps_channel_order(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges) {
  const int ranks = static_cast<int>(schedule.ranks.size());
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      std::vector<std::string> sent, received;
      for (const schedule::Action& action : schedule.ranks[from]) {
        for (int s = 0; s < schedule.stages; ++s) {
          const bool feeds = std::count(edges.begin(), edges.end(), schedule::StageEdge{action.stage, s}) > 0;
          const bool fed = std::count(edges.begin(), edges.end(), schedule::StageEdge{s, action.stage}) > 0;
          if (!(action.type == SEND_F && feeds) && !(action.type == SEND_B && fed)) continue;
          if (from == to || home(schedule, s, action.microbatch) != to) continue;
          sent.push_back(schedule::to_string(action) + ">" + std::to_string(s));
        }
      }
      for (const schedule::Action& action : schedule.ranks[to]) {
        for (int s = 0; s < schedule.stages; ++s) {
          const bool feeds = std::count(edges.begin(), edges.end(), schedule::StageEdge{action.stage, s}) > 0;
          const bool fed = std::count(edges.begin(), edges.end(), schedule::StageEdge{s, action.stage}) > 0;
          if (!(action.type == RECV_F && fed) && !(action.type == RECV_B && feeds)) continue;
          if (from == to || home(schedule, s, action.microbatch) != from) continue;
          const char* kind = action.type == RECV_F ? "SEND_F" : "SEND_B";
          received.push_back(text_of(s, kind, action.microbatch) + ">" + std::to_string(action.stage));
        }
      }
      if (sent != received) return false;
    }
  }
  return true;
}

}  // namespace plumbline::testing
