#include "runtime/schedule/check/liveness.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <set>
#include <unordered_map>

#include "runtime/error.h"

namespace plumbline::schedule {
namespace {

template <typename T>
using MinHeap = std::priority_queue<T, std::vector<T>, std::greater<T>>;

// Where the life of one activation begins and ends in the part of the list read so far; -1 if not yet.
struct Marks {
  int forward = -1, input = -1, release = -1;  // the positions of these actions
  bool in_halves = false;                      // it ends with a W
  int offload = -1, reload = -1;               // positions
  Lifetime lifetime;
};

[[noreturn]] void refuse_liveness(const Schedule& schedule, const std::string& reason) {
  throw InputError("liveness of schedule " + schedule.name + ": " + reason);
}

class Reader {
 public:
  Reader(const Schedule& schedule, int rank, const std::vector<int>& stages)
      : schedule_(schedule), rank_(rank), stages_(stages) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= schedule.ranks.size()) {
      refuse("there is no rank " + std::to_string(rank) + "; ranks are 0 to " +
             std::to_string(schedule.ranks.size() - 1));
    }
    if (stages.empty()) refuse("no stages are given; at least one is needed");
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (stages[i] < 0 || stages[i] >= schedule.stages) {
        refuse("there is no stage " + std::to_string(stages[i]) + "; stages are 0 to " +
               std::to_string(schedule.stages - 1));
      }
      if (!place_of_.emplace(stages[i], i).second) refuse("stage " + std::to_string(stages[i]) + " is given twice");
    }
    marks_.assign(stages.size(), std::vector<Marks>(schedule.microbatches));
  }

  // Indexed by place in `stages` and micro-batch.
  std::vector<std::vector<Marks>> read() {
    const std::vector<Action>& actions = schedule_.ranks[rank_];
    for_each_entry(actions, [&](std::span<const Action> entry) {
      const auto begin = static_cast<int>(entry.data() - actions.data());
      const Lifetime group{begin, begin + static_cast<int>(entry.size()) - 1};
      for (int i = group.begin; i <= group.end; ++i) {
        if (is_compute(actions[i].type) || is_offload(actions[i].type)) take(actions[i], i, group);
      }
    });
    for (std::size_t place = 0; place < stages_.size(); ++place) {
      for (int m = 0; m < schedule_.microbatches; ++m) {
        if (schedule_.rank_of(stages_[place], m) == rank_) require_whole_life(stages_[place], m, marks_[place][m]);
      }
    }
    return std::move(marks_);
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const { refuse_liveness(schedule_, reason); }

  std::string at(const Action& action, int position) const {
    return "rank " + std::to_string(rank_) + ", position " + std::to_string(position) + " (" + to_string(action) + ")";
  }

  // `group` is where the group of the action begins and ends.
  void take(const Action& action, int position, const Lifetime& group) {
    const auto place = place_of_.find(action.stage);
    if (place == place_of_.end()) return;
    const int m = action.microbatch;
    if (m == kNoMicrobatch) refuse(at(action, position) + " has no micro-batch");
    if (m < 0 || m >= schedule_.microbatches) {
      refuse(at(action, position) + ": there is no such micro-batch; they are 0 to " +
             std::to_string(schedule_.microbatches - 1));
    }
    if (schedule_.rank_of(action.stage, m) != rank_) {
      refuse(at(action, position) + " belongs on rank " + std::to_string(schedule_.rank_of(action.stage, m)));
    }
    Marks& marks = marks_[place->second][m];
    const auto once = [&](int& mark, const char* what) {
      if (mark >= 0) {
        refuse(at(action, position) + ": is a second " + what + " of the activation, after position " +
               std::to_string(mark));
      }
      mark = position;
    };
    if (action.type == ActionType::F) {
      once(marks.forward, "forward");
      marks.lifetime.begin = group.begin;
    } else if (action.type == ActionType::I) {
      once(marks.input, "input backward");
    } else if (action.type == ActionType::OFFLOAD) {
      once(marks.offload, "offload");
    } else if (action.type == ActionType::RELOAD) {
      once(marks.reload, "reload");
    } else {
      once(marks.release, "release");
      marks.lifetime.end = group.end;
      marks.in_halves = action.type == ActionType::W;
    }
  }

  void require_whole_life(int stage, int m, const Marks& marks) const {
    const auto text = [&](ActionType type) { return to_string(Action{stage, type, m}); };
    const std::string on_rank = " on rank " + std::to_string(rank_);
    if (marks.forward < 0) refuse(text(ActionType::F) + " is missing" + on_rank);
    if (marks.release < 0) {
      refuse("nothing ends the life of " + text(ActionType::F) + on_rank + ": neither " + text(ActionType::B) +
             " nor " + text(ActionType::W) + " is there");
    }
    if (marks.in_halves && marks.input < 0) {
      refuse(at({stage, ActionType::W, m}, marks.release) + " is there without " + text(ActionType::I));
    }
    // Within one group both have the same position, as in PyTorch.
    if (marks.lifetime.end < marks.lifetime.begin) {
      refuse(at({stage, marks.in_halves ? ActionType::W : ActionType::B, m}, marks.release) + " stands before " +
             text(ActionType::F) + " (position " + std::to_string(marks.forward) + ")");
    }
  }

  const Schedule& schedule_;
  const int rank_;
  const std::vector<int>& stages_;
  std::unordered_map<int, std::size_t> place_of_;  // by stage: its index in `stages`
  std::vector<std::vector<Marks>> marks_;
};

}  // namespace

SlotAssignment assign_slots(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(lifetimes[a].begin, lifetimes[a].end) < std::pair(lifetimes[b].begin, lifetimes[b].end);
  });
  SlotAssignment result{std::vector<int>(lifetimes.size()), 0};
  MinHeap<int> free;
  MinHeap<std::pair<int, int>> alive;  // the end, and the slot
  for (const std::size_t i : order) {
    for (; !alive.empty() && alive.top().first < lifetimes[i].begin; alive.pop()) free.push(alive.top().second);
    if (free.empty()) free.push(result.slots++);
    result.slot_of[i] = free.top();
    alive.emplace(lifetimes[i].end, free.top());
    free.pop();
  }
  return result;
}

ActivationGranularity parse_granularity(std::string_view text) {
  if (text == "microbatch") return ActivationGranularity::Microbatch;
  if (text == "stage_microbatch") return ActivationGranularity::StageMicrobatch;
  throw InputError("there is no granularity " + quoted_text(text) + "; expected microbatch or stage_microbatch");
}

Liveness activation_liveness(const Schedule& schedule, int rank, const std::vector<int>& stages,
                             ActivationGranularity granularity) {
  if (const std::string problem = shape_problem(schedule); !problem.empty()) refuse_liveness(schedule, problem);
  const std::vector<std::vector<Marks>> marks = Reader(schedule, rank, stages).read();
  Liveness result{rank, stages, schedule.microbatches};
  result.slot_of.assign(stages.size(), std::vector<int>(schedule.microbatches, -1));
  result.lifetime_of.assign(stages.size(), std::vector<Lifetime>(schedule.microbatches));

  // Ties go to the lower stage, wherever it is in `stages`, then to the lower micro-batch.
  std::vector<std::size_t> places(stages.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return stages[a] < stages[b]; });
  std::vector<Lifetime> lifetimes;
  std::vector<std::vector<int>> number_of(stages.size(), std::vector<int>(schedule.microbatches, -1));
  std::vector<int> number_of_microbatch(schedule.microbatches, -1);
  for (std::size_t place : places) {
    for (int m = 0; m < schedule.microbatches; ++m) {
      if (schedule.rank_of(stages[place], m) != rank) continue;
      if (marks[place][m].offload >= 0) {
        refuse_liveness(schedule, "an activation that is offloaded has no single slot: " +
                                      to_string(Action{stages[place], ActionType::OFFLOAD, m}));
      }
      const Lifetime& own = marks[place][m].lifetime;
      const bool joins = granularity == ActivationGranularity::Microbatch && number_of_microbatch[m] >= 0;
      const int number = joins ? number_of_microbatch[m] : static_cast<int>(lifetimes.size());
      if (!joins) lifetimes.push_back(own);
      lifetimes[number].begin = std::min(lifetimes[number].begin, own.begin);
      lifetimes[number].end = std::max(lifetimes[number].end, own.end);
      number_of[place][m] = number_of_microbatch[m] = number;
    }
  }
  const SlotAssignment assignment = assign_slots(lifetimes);
  result.slots = assignment.slots;
  for (std::size_t place : places) {
    for (int m = 0; m < schedule.microbatches; ++m) {
      if (number_of[place][m] < 0) continue;
      result.slot_of[place][m] = assignment.slot_of[number_of[place][m]];
      result.lifetime_of[place][m] = lifetimes[number_of[place][m]];
    }
  }
  return result;
}

std::vector<int> peak_live(const Schedule& schedule) {
  if (const std::string problem = shape_problem(schedule); !problem.empty()) refuse_liveness(schedule, problem);
  std::vector<std::set<int>> stages_of(schedule.ranks.size());
  for (std::size_t i = 0; i < schedule.rank_of_stage.size(); ++i) {
    stages_of[schedule.rank_of_stage[i]].insert(static_cast<int>(i) % schedule.stages);
  }
  std::vector<int> peaks;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::vector<int> stages(stages_of[rank].begin(), stages_of[rank].end());
    std::vector<Lifetime> lifetimes;
    const std::vector<std::vector<Marks>> marks = Reader(schedule, static_cast<int>(rank), stages).read();
    for (std::size_t place = 0; place < stages.size(); ++place) {
      for (int m = 0; m < schedule.microbatches; ++m) {
        if (schedule.rank_of(stages[place], m) != static_cast<int>(rank)) continue;
        const Marks& of = marks[place][m];
        lifetimes.push_back(of.lifetime);
        if (of.offload < 0 || of.reload < 0) continue;
        lifetimes.back().end = of.offload;
        lifetimes.push_back({of.reload, of.lifetime.end});
      }
    }
    peaks.push_back(assign_slots(lifetimes).slots);
  }
  return peaks;
}

}  // namespace plumbline::schedule
